package actors

import (
	"log/slog"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func silent(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) }

// watch looks at the calls that the process makes, at the moment when it makes them.
func (p *proc) watch() *consumertest.Around {
	return &consumertest.Around{
		Pull: p.pull, Stored: p.lookUp, Commit: p.commit, SendBack: p.sendBack, DeadLetter: p.deadLetter,
	}
}

// commit is I4 too: no commit that begins after its queue was given up is taken.
func (p *proc) commit(l consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
	w := p.w

	w.mu.Lock()
	sought := p.seeks(l, c)
	late := p.revoked[l] && !sought && !p.restarts(l, c)
	w.mu.Unlock()

	err := call(c)

	w.mu.Lock()
	defer w.mu.Unlock()

	if sought && err == nil {
		// Whoever gets the queue next goes on there, under whatever lease.
		p.answered[l.Queue], p.seeking[l], p.known[l.Queue] = c, c.Next, c.Next
	}

	if late && err == nil && !p.crashed {
		w.breachf("I4", "%s commits %s in epoch %d after it was given up", p.name, l.Queue, l.Epoch)
	}

	return err
}

func (p *proc) pull(l consumer.Lease, call func() (consumer.Batch, error)) (consumer.Batch, error) {
	p.w.mu.Lock()
	if p.paused[l.Queue] && !p.crashed {
		p.w.breachf("pause", "%s pulls %s, which is paused", p.name, l.Queue)
	}
	p.w.mu.Unlock()

	return call()
}

func (p *proc) lookUp(q pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error) {
	c, err := call()

	p.w.mu.Lock()
	p.answered[q] = c
	p.w.mu.Unlock()

	return c, err
}

func (p *proc) sendBack(back *pipeline.Message, _ time.Duration, call func(*pipeline.Message) error) error {
	w, a := p.w, p.w.attemptOf(p, back)

	w.mu.Lock()
	ownership := w.returns("a send-back", back, a)

	if w.spec.ordered {
		w.breachf("I7", "%s was sent back from an ordered job", back.ID)
	}

	if back.Origin.Delivery >= w.spec.retry.Attempts {
		w.breachf("I8", "%s was sent back at delivery %d of %d", back.ID, back.Origin.Delivery, w.spec.retry.Attempts)
	}
	w.mu.Unlock()

	err := call(back)
	w.returnedOne(a, ownership, err)

	return err
}

func (p *proc) deadLetter(dead *pipeline.Message, c consumer.Cause, call func(*pipeline.Message) error) error {
	w, a := p.w, p.w.attemptOf(p, dead)

	w.mu.Lock()
	ownership := w.returns("a dead letter", dead, a)

	if most := dead.Origin.Delivery - 1 + w.failed[a]; c.Deliveries > most {
		w.breachf("breaker", "%s is a dead letter after %d attempts, and %d were any", dead.ID, c.Deliveries, most)
	}

	if !w.rejected[dead.ID] && c.Deliveries < w.spec.retry.Attempts {
		w.breachf("I8", "%s is a dead letter after %d of %d deliveries", dead.ID, c.Deliveries, w.spec.retry.Attempts)
	}
	w.mu.Unlock()

	err := call(dead)
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
