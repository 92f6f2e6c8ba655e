package actorstest

import (
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// watch looks at the calls that the process makes.
func (p *process) watch() *consumertest.Around {
	return &consumertest.Around{
		Join: p.join, Pull: p.pull, Stored: p.lookUp, Commit: p.commit, SendBack: p.sendBack, DeadLetter: p.deadLetter,
	}
}

func (p *process) join(call func() (consumer.Member, error)) (consumer.Member, error) {
	<-p.subscribed

	return call()
}

// pull notes what comes into the job.
func (p *process) pull(l consumer.Lease, call func() (consumer.Batch, error)) (consumer.Batch, error) {
	batch, err := call()

	c := p.course
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, message := range batch.Messages {
		c.book.pulled(consumer.Lease{Queue: l.Queue, Epoch: l.Epoch}, message, c.plan.Entry)
		c.notef(place{l.Queue, message.Origin.Offset}, message.ID,
			"%s has pulled it, delivery %d", p.name, message.Origin.Delivery)
	}

	return batch, err
}

// lookUp notes with what an ownership begins.
func (p *process) lookUp(q pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error) {
	stored, err := call()

	p.course.locked(func() { p.answered[q] = stored })

	return stored, err
}

// commit is I4: no commit that begins after its queue was given up is taken.
func (p *process) commit(l consumer.Lease, cp consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
	c := p.course
	lease := consumer.Lease{Queue: l.Queue, Epoch: l.Epoch}

	var late bool

	c.locked(func() { late = p.revoked[lease] && !p.moved[lease] })

	err := call(cp)

	c.locked(func() {
		if late && err == nil && !p.crashed {
			c.breakf("I4", place{l.Queue, cp.Next}, "",
				"%s commits %v in epoch %d after it has given the queue up", p.name, cp, l.Epoch)
		}

		if p.moved[lease] && err == nil { // perhaps the seek's own: the queue goes on there
			p.answered[l.Queue], p.known[l.Queue] = cp, cp.Next
		}
	})

	return err
}

// sendBack checks that a message goes back for a reason, and once.
func (p *process) sendBack(back *pipeline.Message, _ time.Duration, call func(*pipeline.Message) error) error {
	c := p.course

	var a *attempt

	c.locked(func() {
		a = p.handsBack("sent back", back)

		if most := c.plan.Job.Retry.Attempts; back.Origin.Delivery >= most {
			c.breakf("I8", placeOf(back), back.ID, "%s sends it back at delivery %d of %d", p.name, back.Origin.Delivery, most)
		}
	})

	err := call(back)
	p.handedBack(a, err)

	return err
}

// deadLetter checks that a message is parked for a reason, and once.
func (p *process) deadLetter(dead *pipeline.Message, cause consumer.Cause, call func(*pipeline.Message) error) error {
	c := p.course

	var a *attempt

	c.locked(func() {
		a = p.handsBack("parked", dead)

		if most := c.plan.Job.Retry.Attempts; !c.rejected[dead.ID] && cause.Deliveries < most {
			c.breakf("I8", placeOf(dead), dead.ID, "%s parks it after %d of %d deliveries, and nobody has rejected it",
				p.name, cause.Deliveries, most)
		}
	})

	err := call(dead)
	p.handedBack(a, err)

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
