package actorstest

import (
	"context"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// watchedBroker looks at the calls that one process makes.
type watchedBroker struct {
	consumer.Broker

	p *process
}

func (b *watchedBroker) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	<-b.p.subscribed

	m, err := b.Broker.Join(ctx, s)
	if err != nil {
		return nil, err
	}

	return &watchedMember{Member: m, p: b.p}, nil
}

type watchedMember struct {
	consumer.Member

	p *process
}

// Pull notes what comes into the job.
func (m *watchedMember) Pull(
	ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, error) {
	batch, err := m.Member.Pull(ctx, l, from, limit)

	c := m.p.course
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, message := range batch.Messages {
		c.book.pulled(consumer.Lease{Queue: l.Queue, Epoch: l.Epoch}, message, c.plan.Entry)
		c.notef(place{l.Queue, message.Origin.Offset}, message.ID,
			"%s has pulled it, delivery %d", m.p.name, message.Origin.Delivery)
	}

	return batch, err
}

// Stored notes with what an ownership begins.
func (m *watchedMember) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	stored, err := m.Member.Stored(ctx, q)

	m.p.course.locked(func() { m.p.answered[q] = stored })

	return stored, err
}

// Commit is I4: no commit that begins after its queue was given up is taken.
func (m *watchedMember) Commit(ctx context.Context, l consumer.Lease, cp consumer.Checkpoint) error {
	c := m.p.course
	lease := consumer.Lease{Queue: l.Queue, Epoch: l.Epoch}

	var late bool

	c.locked(func() { late = m.p.revoked[lease] && !m.p.moved[lease] })

	err := m.Member.Commit(ctx, l, cp)

	c.locked(func() {
		if late && err == nil && !m.p.crashed {
			c.breakf("I4", place{l.Queue, cp.Next}, "",
				"%s commits %v in epoch %d after it has given the queue up", m.p.name, cp, l.Epoch)
		}

		if m.p.moved[lease] && err == nil { // perhaps the seek's own: the queue goes on there
			m.p.answered[l.Queue], m.p.known[l.Queue] = cp, cp.Next
		}
	})

	return err
}

// SendBack checks that a message goes back for a reason, and once.
func (m *watchedMember) SendBack(ctx context.Context, back *pipeline.Message, delay time.Duration) error {
	c := m.p.course

	var a *attempt

	c.locked(func() {
		a = m.p.handsBack("sent back", back)

		if most := c.plan.Job.Retry.Attempts; back.Origin.Delivery >= most {
			c.breakf("I8", placeOf(back), back.ID, "%s sends it back at delivery %d of %d", m.p.name, back.Origin.Delivery, most)
		}
	})

	err := m.Member.SendBack(ctx, back, delay)
	m.p.handedBack(a, err)

	return err
}

// DeadLetter checks that a message is parked for a reason, and once.
func (m *watchedMember) DeadLetter(ctx context.Context, dead *pipeline.Message, cause consumer.Cause) error {
	c := m.p.course

	var a *attempt

	c.locked(func() {
		a = m.p.handsBack("parked", dead)

		if most := c.plan.Job.Retry.Attempts; !c.rejected[dead.ID] && cause.Deliveries < most {
			c.breakf("I8", placeOf(dead), dead.ID, "%s parks it after %d of %d deliveries, and nobody has rejected it",
				m.p.name, cause.Deliveries, most)
		}
	})

	err := m.Member.DeadLetter(ctx, dead, cause)
	m.p.handedBack(a, err)

	return err
}

func placeOf(m *pipeline.Message) place { return place{m.Origin.Queue, m.Origin.Offset} }

// handsBack checks that a message may be handed back. The caller holds mu.
func (p *process) handsBack(how string, m *pipeline.Message) *attempt {
	c, at := p.course, placeOf(m)

	if c.plan.Job.Source.Broadcast {
		c.breakf("I1", at, m.ID, "%s has it %s, though the job is a broadcast", p.name, how)
	}

	a := c.book.at(m)
	if a == nil || p.crashed {
		return nil
	}

	if !a.failed {
		c.breakf("I1", at, m.ID, "%s has it %s, and nothing of it has failed", p.name, how)
	}

	if a.back {
		c.breakf("I8", at, m.ID, "%s has it %s, though the broker has taken it back already", p.name, how)
	}

	for _, k := range c.calls[at] {
		if k.p == p && !k.hung {
			for _, running := range k.attempts() {
				if running == a {
					c.breakf("I11", at, m.ID, "%s has it %s while it still runs in %s", p.name, how, k.where())
				}
			}
		}
	}

	return a
}

func (p *process) handedBack(a *attempt, err error) {
	if a != nil && err == nil {
		p.course.locked(func() { a.back = true })
	}
}

// onCommit checks every commit that the broker sees. It runs under the broker's lock.
func (c *course) onCommit(k consumertest.Commit) {
	c.mu.Lock()
	defer c.mu.Unlock()

	lease := consumer.Lease{Queue: k.Lease.Queue, Epoch: k.Lease.Epoch}
	at := place{lease.Queue, anyOffset}
	c.notef(at, "", "%s commits %s: %v, error %v", k.Instance, lease.Queue, k.Checkpoint, k.Err)

	for _, r := range k.Covers {
		p := place{r.Queue, r.Offset}
		if !r.Returned && !c.book.finished[p] && !c.vague(p) {
			c.breakf("I2", p, r.ID, "%s commits %v, and it is not finished: %s", k.Instance, k.Checkpoint, c.state(p))
		}
	}

	if k.Err != nil {
		return
	}

	p := c.living[k.Instance]
	moved := p != nil && p.moved[lease]

	if last, ok := c.commits[lease]; ok && !k.Checkpoint.Includes(last) && !moved {
		c.breakf("I3", at, "", "%s commits %v after %v", k.Instance, k.Checkpoint, last)
	}

	c.commits[lease] = k.Checkpoint
	c.stored[lease.Queue] = append(c.stored[lease.Queue], k.Checkpoint)
}

// vague says whether some attempt at a record hung. The caller holds mu, here and below.
func (c *course) vague(p place) bool {
	for l, attempts := range c.book.attempts {
		if l.Queue == p.queue && attempts[p.offset] != nil && attempts[p.offset].vague {
			return true
		}
	}

	return false
}

// state says how far a record is.
func (c *course) state(p place) string {
	var newest *attempt

	for l, attempts := range c.book.attempts {
		if a := attempts[p.offset]; l.Queue == p.queue && a != nil && (newest == nil || newest.lease.Epoch < l.Epoch) {
			newest = a
		}
	}

	switch {
	case newest == nil:
		return "nobody has pulled it"
	case len(c.calls[p]) > 0:
		return "it runs in " + c.calls[p][0].where()
	default:
		return newest.whole.describe(c)
	}
}
