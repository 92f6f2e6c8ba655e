package actorstest

import (
	"context"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// begin starts a process unless it runs.
func (c *course) begin(name string) {
	if old := c.procs[name]; old != nil {
		if old.job.Report() == nil {
			return
		}

		c.gone(name)
	}

	c.starts++
	p := c.start(name)
	c.procs[name] = p
	c.locked(func() { c.living[name] = p })
}

// stop drains a process and checks how long that takes.
func (c *course) stop(name string, budget time.Duration) {
	p := c.procs[name]
	if p == nil {
		return
	}

	c.locked(func() { c.notef(place{}, "", "%s is to stop within %s", name, budget) })

	if p.stop(budget) == nil {
		c.locked(func() {
			c.breakf("drain", place{}, "", "%s is to stop within %s, and has not for a quarter of an hour", name, budget)
		})
		c.kill(name)

		return
	}

	c.gone(name)
}

// gone forgets a process that has ended; the broker forgets the member too, should its farewell have failed.
func (c *course) gone(name string) {
	delete(c.procs, name)
	c.b.Crash(c.group(), name)
}

// kill ends a process as SIGKILL does: no call of it reaches the broker or a sink any more.
func (c *course) kill(name string) {
	p := c.procs[name]
	if p == nil {
		return
	}

	c.kills++
	c.locked(func() {
		p.crashed = true
		c.notef(place{}, "", "%s is killed", name)
	})
	c.gone(name)
	c.killed.Go(func() { p.job.Drain(-1) })

	if c.spec.Processes == 1 {
		c.killed.Wait()
	}
}

// tell notes that the broker takes a queue from its owner.
func (c *course) tell(q pipeline.Queue, atOnce bool) {
	c.locked(func() { c.notef(place{q, anyOffset}, "", "the broker takes %s, at once %v", q, atOnce) })
}

// seek moves a queue back, to an offset that the group has committed: what lies above is done again, nothing is left out.
func (c *course) seek() {
	p, q := c.procs[c.someName()], c.Queue()
	if p == nil || p.job.Report() != nil {
		return
	}

	to, _, ok := c.Back(c.member(), q, 0)
	if !ok {
		return
	}

	c.locked(func() {
		c.notef(place{q, anyOffset}, "", "%s is to seek %s to %d", p.name, q, to)

		if epoch, ok := p.owned[q]; ok {
			p.moved[consumer.Lease{Queue: q, Epoch: epoch}] = true
		} else {
			p.sought[q] = to
		}
	})

	c.killed.Go(func() {
		const patience = 5 * time.Minute

		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.t.Context()), patience)
		defer cancel()

		err := p.job.Seek(ctx, q, to)

		c.locked(func() {
			c.notef(place{q, anyOffset}, "", "%s has sought %s: error %v", p.name, q, err)

			if ctx.Err() != nil {
				c.breakf("seek", place{q, anyOffset}, "", "%s has not answered a seek to %d for %s", p.name, to, patience)
			}
		})
	})
}

// rollBack has the broker come back with an older offset of a queue, and give it anew.
func (c *course) rollBack() {
	q := c.Queue()

	var old []consumer.Checkpoint

	c.locked(func() { old = c.stored[q] })

	if len(old) == 0 || c.member() != "" {
		return
	}

	to := old[c.Rnd.IntN(len(old))]
	c.locked(func() { c.notef(place{q, anyOffset}, "", "the broker comes back with %s at %v", q, to) })
	c.b.RollBack(c.group(), q, to)
	_ = c.b.Reassign(c.group(), q, true) // nobody may own it just now
}
