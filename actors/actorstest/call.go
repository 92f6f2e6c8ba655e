package actorstest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// endStage is the number of a channel's sink or gather.
const endStage = -1

// call is a running call of a stage, a gather or a sink.
type call struct {
	p       *process
	channel int
	stage   int
	parts   []part
	since   time.Time
	// hung: the job has said that it gave the call up.
	hung bool
}

// attempts are the ones that a call works on.
func (c *call) attempts() []*attempt {
	var all []*attempt
	for _, p := range c.parts {
		all = append(all, p.whole.attempts()...)
	}

	return all
}

func (c *call) where() string {
	return fmt.Sprintf("%s of %s", c.p.course.site(c.channel, c.stage), c.p.name)
}

// enter notes that a call begins, and checks that it may. The caller holds mu.
func (c *course) enter(k *call) {
	k.since = time.Now()

	for _, a := range k.attempts() {
		for _, other := range c.calls[a.place] {
			c.checkAlone(k, other, a)
		}

		if k.p.crashed {
			continue
		}

		if c.stopped {
			c.breakf("I6", a.place, a.id, "it runs again, in %s, after a clean stop", k.where())
		}

		if from, ok := k.p.starts[a.lease]; ok && from.Finished(a.offset) && !k.p.moved[a.lease] {
			c.breakf("I6", a.place, a.id, "it runs again, in %s, though the checkpoint %v says that it is finished",
				k.where(), from)
		}
	}

	for _, a := range k.attempts() {
		c.calls[a.place] = append(c.calls[a.place], k)
	}
}

// checkAlone is I11.
func (c *course) checkAlone(k, other *call, a *attempt) {
	if other.p != k.p || other.hung || k.p.crashed {
		return
	}

	for _, o := range other.attempts() {
		if o.place != a.place {
			continue
		}

		same := k.channel == other.channel && k.stage == other.stage && k.parts[0].m == other.parts[0].m
		if o != a || same {
			c.breakf("I11", a.place, a.id, "it runs twice at a time: in %s since %s, and now in %s",
				other.where(), c.clock(other.since), k.where())
		}
	}
}

// end notes that a call has returned; it reports whether its result counts. The caller holds mu.
func (c *course) end(k *call) bool {
	for _, a := range k.attempts() {
		list := c.calls[a.place]
		for i := range list {
			if list[i] == k {
				c.calls[a.place] = append(list[:i:i], list[i+1:]...)

				break
			}
		}
	}

	return !k.hung && !k.p.crashed
}

// fail notes that a part has failed in a call. The caller holds mu.
func (c *course) fail(k *call, p part, err error) {
	for _, a := range p.whole.attempts() {
		a.failed = true
		c.failures[a.id]++

		if pipeline.IsRejected(err) {
			c.rejected[a.id] = true
		}

		c.notef(a.place, a.id, "%s fails: %v", k.where(), err)
	}
}

// checkOrder is I7 where messages come into an ordered channel: inside of one ownership the offsets of a key never go down.
// The caller holds mu.
func (c *course) checkOrder(k *call) {
	p := k.parts[0]
	a := p.whole.source

	if c.plan.Job.Channels[k.channel].Order == pipeline.OrderNone || a == nil || a.vague || k.p.crashed || k.p.moved[a.lease] {
		return
	}

	s := c.slot(k.channel, p.key, a)

	if last, ok := c.started[s]; ok && a.offset < last {
		c.breakf("I7", a.place, a.id, "it begins in %s after offset %d, though both have the key %q", k.where(), last, s.key)
	}

	c.started[s] = a.offset
}

// slot is what an ordered channel keeps in order.
func (c *course) slot(channel int, key string, a *attempt) slot {
	if c.plan.Job.Channels[channel].Order != pipeline.OrderByKey {
		key = ""
	}

	return slot{channel: channel, key: key, lease: a.lease}
}

// wrote notes the order in which a sink has taken messages. The caller holds mu.
func (c *course) wrote(k *call, p part) {
	for _, a := range p.whole.attempts() {
		c.book.writes[a.id]++
		c.notef(a.place, a.id, "%s has taken it", k.where())
	}

	a := p.whole.source
	if c.plan.Job.Channels[k.channel].Order == pipeline.OrderNone || a == nil || a.vague {
		return
	}

	s := c.slot(k.channel, p.key, a)
	if c.lastWrite[s] == nil {
		c.lastWrite[s] = make(map[pipeline.Offset]int)
	}

	c.turns++
	c.lastWrite[s][a.offset] = c.turns
}

// cancelled says whether a call has failed only since its lane stops.
func cancelled(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, ctx.Err()) && !errors.Is(context.Cause(ctx), pipeline.ErrTimeout)
}
