package actorstest

import (
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// heal ends all trouble, and publishes the rest.
func (c *course) heal() {
	c.b.SetFaults(consumertest.Faults{})
	c.publish(c.spec.Messages)
	c.locked(func() {
		c.trouble = false
		c.notef(place{}, "", "peace")
	})

	for _, name := range c.names() {
		if p := c.procs[name]; p != nil && p.job.Report() != nil {
			c.gone(name)
		}
	}

	if len(c.procs) == 0 {
		c.begin(c.names()[0])
	}
}

// settle is I5: it waits until everything is finished and committed, for a bounded time.
func (c *course) settle() {
	const every = 5 * time.Second

	for waited := time.Duration(0); ; waited += every {
		<-time.After(every)

		inFlight := c.look()
		behind := c.b.Behind(c.group(), c.member(), c.topics()...)

		if len(behind) == 0 && inFlight == 0 {
			return
		}

		for name, p := range c.procs {
			if r := p.job.Report(); r != nil {
				c.locked(func() { c.breakf("I5", place{}, "", "%s has stopped by itself: %v", name, r.Err) })

				return
			}
		}

		if waited >= c.spec.Patience {
			c.accuse(behind)

			return
		}
	}
}

// accuse says what holds everything up.
func (c *course) accuse(behind []string) {
	for name, p := range c.procs {
		s, err := p.job.Snapshot(c.t.Context())
		if err != nil {
			continue
		}

		for i := range s.Queues {
			if q := &s.Queues[i]; q.Blocking != nil {
				c.locked(func() {
					b := q.Blocking
					c.breakf("I5", place{q.Queue, b.Offset}, b.MessageID,
						"after %s of peace %s still says that it %s, in %s/%s, attempt %d, %s; %s",
						c.spec.Patience, name, b.Doing, b.Channel, b.Stage, b.Attempt, b.LastError, b.Next)
				})
			}
		}
	}

	c.locked(func() {
		c.breakf("I5", place{}, "", "after %s of peace there is still %s", c.spec.Patience, strings.Join(behind, ", "))
	})
}

// stopAll stops every process; what is finished needs no time.
func (c *course) stopAll() {
	clean := true

	for _, name := range c.names() {
		p := c.procs[name]
		if p == nil {
			continue
		}

		c.stop(name, 10*time.Second)

		r := p.job.Report()
		clean = clean && r != nil && r.Clean

		if r != nil && r.UnfinishedCount > 0 {
			c.locked(func() {
				c.breakf("drain", place{}, "", "%s had nothing to do and has left %d messages", name, r.UnfinishedCount)
			})
		}
	}

	c.lasted = time.Since(c.began)
	c.fates = c.b.Fates(c.group(), c.topics()...)
	c.locked(func() { c.stopped = clean && len(c.breaches) == 0 })
}

// restart is the last part of I6: after a clean stop nothing is done again.
func (c *course) restart() {
	c.locked(c.checkBooks)

	c.begin(c.names()[0])
	<-time.After(20 * time.Second)
	c.look()

	for _, name := range c.names() {
		c.stop(name, 0)
	}
}

// check checks what a job says of itself in a moment of rest, and returns how much it has in flight. The caller holds mu, here
// and below.
func (c *course) check(p *process, s *actors.Snapshot) int {
	inFlight := 0

	for i := range s.Queues {
		inFlight += s.Queues[i].InFlight
	}

	for _, k := range s.Contradictions(p.job.Plan(), c.limits) {
		c.breakf(k.Rule, place{k.Queue, anyOffset}, "", "%s: %s", p.name, k.Text)
	}

	credit := len(s.Queues)*c.limits.OrDefaults().Messages + p.left

	for i := range s.Channels {
		if ch := &s.Channels[i]; ch.Waiting > credit*c.book.most {
			c.breakf("I10", place{}, "", "%s: %d messages wait for %s, where %d can be in flight, of %d parts each at most",
				p.name, ch.Waiting, ch.Name, credit, c.book.most)
		}
	}

	return inFlight
}

// checkBooks is I1 at the end of a run: every message that was published has come to one end.
func (c *course) checkBooks() {
	for _, id := range c.published {
		f := c.fates[id]
		at := place{f.Queue, f.Offset}

		finished := c.book.finished[at] || c.vague(at)
		if ends := f.Dead; ends > 1 || ends == 0 && !finished {
			c.breakf("I1", at, id,
				"it has come to %d ends: %d dead letters, and of its last delivery %s", ends, f.Dead, c.state(at))
		}

		if f.Delivered != f.SentBack+1 || f.Delivered > c.plan.Job.Retry.Attempts {
			c.breakf("I8", at, id,
				"it was sent back %d times and delivered %d times, of %d", f.SentBack, f.Delivered, c.plan.Job.Retry.Attempts)
		}
	}

	c.checkLastWrites()
}

// checkLastWrites is I7 for sinks: inside one ownership the last writes of a key are in the order of its offsets, for all that
// got finished.
func (c *course) checkLastWrites() {
	for s, writes := range c.lastWrite {
		for o, n := range writes {
			for other, m := range writes {
				if o < other && n > m && c.stays(s, o) && c.stays(s, other) {
					a := c.book.attempts[s.lease][o]
					c.breakf("I7", a.place, a.id, "%s took it after offset %d, though both have the key %q",
						c.site(s.channel, endStage), other, s.key)
				}
			}
		}
	}
}

// stays says whether an attempt is finished for good: its owner has committed it, and has not handed it back.
func (c *course) stays(s slot, o pipeline.Offset) bool {
	a := c.book.attempts[s.lease][o]

	return a != nil && a.whole.size() == 0 && !a.vague && !a.back && c.commits[s.lease].Finished(o)
}
