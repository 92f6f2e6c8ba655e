package actors

import (
	"context"
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func silent(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }

// watchedBroker looks at the calls that one process makes, at the moment when it makes them.
type watchedBroker struct {
	consumer.Broker

	p *proc
}

func (b *watchedBroker) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	m, err := b.Broker.Join(ctx, s)
	if err != nil {
		return nil, err
	}

	return &watchedMember{Member: m, p: b.p}, nil
}

type watchedMember struct {
	consumer.Member

	p *proc
}

// Commit is I4 too: no commit that begins after its queue was given up is taken.
func (m *watchedMember) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	w := m.p.w

	w.mu.Lock()
	sought := m.p.seeks(l, c)
	late := m.p.revoked[l] && !sought && !m.p.restarts(l, c)
	w.mu.Unlock()

	err := m.Member.Commit(ctx, l, c)

	w.mu.Lock()
	defer w.mu.Unlock()

	if sought && err == nil {
		// Whoever gets the queue next goes on there, under whatever lease.
		m.p.answered[l.Queue], m.p.seeking[l], m.p.known[l.Queue] = c, c.Next, c.Next
	}

	if late && err == nil && !m.p.crashed {
		w.breachf("I4", "%s commits %s in epoch %d after it was given up", m.p.name, l.Queue, l.Epoch)
	}

	return err
}

func (m *watchedMember) Pull(
	ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, error) {
	m.p.w.mu.Lock()
	if m.p.paused[l.Queue] && !m.p.crashed {
		m.p.w.breachf("pause", "%s pulls %s, which is paused", m.p.name, l.Queue)
	}
	m.p.w.mu.Unlock()

	return m.Member.Pull(ctx, l, from, limit)
}

func (m *watchedMember) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	c, err := m.Member.Stored(ctx, q)

	m.p.w.mu.Lock()
	m.p.answered[q] = c
	m.p.w.mu.Unlock()

	return c, err
}

func (m *watchedMember) SendBack(ctx context.Context, back *pipeline.Message, delay time.Duration) error {
	w, a := m.p.w, m.p.w.attemptOf(m.p, back)

	w.mu.Lock()
	ownership := w.returns("a send-back", back, a)

	if w.spec.ordered {
		w.breachf("I7", "%s was sent back from an ordered job", back.ID)
	}

	if back.Origin.Delivery >= w.spec.retry.Attempts {
		w.breachf("I8", "%s was sent back at delivery %d of %d", back.ID, back.Origin.Delivery, w.spec.retry.Attempts)
	}
	w.mu.Unlock()

	err := m.Member.SendBack(ctx, back, delay)
	w.returnedOne(a, ownership, err)

	return err
}

func (m *watchedMember) DeadLetter(ctx context.Context, dead *pipeline.Message, c consumer.Cause) error {
	w, a := m.p.w, m.p.w.attemptOf(m.p, dead)

	w.mu.Lock()
	ownership := w.returns("a dead letter", dead, a)

	if most := dead.Origin.Delivery - 1 + w.failed[a]; c.Deliveries > most {
		w.breachf("breaker", "%s is a dead letter after %d attempts, and %d were any", dead.ID, c.Deliveries, most)
	}

	if !w.rejected[dead.ID] && c.Deliveries < w.spec.retry.Attempts {
		w.breachf("I8", "%s is a dead letter after %d of %d deliveries", dead.ID, c.Deliveries, w.spec.retry.Attempts)
	}
	w.mu.Unlock()

	err := m.Member.DeadLetter(ctx, dead, c)
	w.returnedOne(a, ownership, err)

	return err
}

func (w *world) attemptOf(p *proc, m *pipeline.Message) attempt {
	return attempt{place: w.placeOf(p.name, m.Origin.Queue, m.Origin.Offset), epoch: m.Origin.Epoch}
}

// placeOf is where a record stands for the process that reads it.
func (w *world) placeOf(name string, q pipeline.Queue, o pipeline.Offset) place {
	return place{reader: reader{member: w.memberOf(name), queue: q}, offset: o}
}

// memberOf is under whose name a process stores its offsets; empty means the group's.
func (w *world) memberOf(name string) string {
	if w.spec.broadcast {
		return name
	}

	return ""
}

// returns checks that a message is handed back for a reason, and once. It returns the number of the ownership under the
// lease, which a seek ends. The caller holds mu.
func (w *world) returns(what string, m *pipeline.Message, a attempt) int {
	if w.spec.broadcast {
		w.breachf("I1", "%s of %s from a broadcasting job", what, m.ID)
	}

	w.checkFailed(what, m.ID, a)

	if w.returned[a] {
		w.breachf("I8", "%s of %s, which was taken back already", what, m.ID)
	}

	for _, c := range w.calls[m.ID] {
		for _, r := range c.refs {
			if r.attempt == a && !c.hung && !c.p.crashed {
				w.breachf("I11", "%s of %s, which still runs in %s", what, m.ID, w.where(c))
			}
		}
	}

	return w.resoughts[a.lease()]
}

func (w *world) returnedOne(a attempt, ownership int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if err == nil && ownership == w.resoughts[a.lease()] {
		w.returned[a] = true
		w.shut(a)
	}
}

// onCommit checks every commit that the broker sees. It runs under the broker's lock.
func (w *world) onCommit(c consumertest.Commit) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.stats.commits++
	w.notef("%s: commit %s epoch %d: %v (%v)", c.Instance, c.Lease.Queue, c.Lease.Epoch, c.Checkpoint, c.Err)

	if c.Err == nil {
		w.noteStart(w.placeOf(c.Instance, c.Lease.Queue, c.Checkpoint.Next))
	}

	for _, r := range c.Covers {
		at := w.placeOf(c.Instance, r.Queue, r.Offset)
		if at.offset < w.startAt[at.reader] || w.leftOver(at) || c.Err != nil && !c.Stored && !w.spec.start.IsFirst() {
			continue // left out by the start, or by a seek
		}

		if !r.Returned && !w.done[at] {
			w.breachf("I2", "%s commits %s: %v, which covers %d (%s) that is not finished", c.Instance, c.Lease.Queue,
				c.Checkpoint, r.Offset, r.ID)
		}
	}

	if c.Err != nil {
		return
	}

	sought := w.living[c.Instance].seeks(c.Lease, c.Checkpoint)
	if last, ok := w.commits[c.Lease]; ok && !c.Checkpoint.Includes(last) && !sought {
		w.breachf("I3", "%s commits %s in epoch %d: %v after %v", c.Instance, c.Lease.Queue, c.Lease.Epoch, c.Checkpoint, last)
	}

	w.commits[c.Lease] = c.Checkpoint
}
