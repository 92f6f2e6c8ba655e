package actors

import (
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// channel is a running channel: what its lanes share, and what others must know to send messages to it.
// All fields but the atomic ones are set before the first lane starts and not changed afterwards.
type channel struct {
	*job

	spec *pipeline.Channel
	// index is the channel's place in the plan.
	index int
	// inPlace: failures are retried by the lane, since sending a message back would break an order.
	inPlace bool
	// inboxes is one for all lanes of an unordered channel, otherwise one a lane.
	inboxes []*inbox
	targets []*channel
	breaker *breaker
	// flushing is above zero while half-full batches are to be handed on without waiting.
	flushing atomic.Int32
	// until is the latest moment until which a closing queue has waited for the channel, by the clock.
	until atomic.Int64
}

// endStage is the number of a channel's sink or gather stage.
func (c *channel) endStage() int32 { return int32(len(c.spec.Stages)) }

// stageName returns the name of a stage by its number.
func (c *channel) stageName(i int32) string {
	switch {
	case int(i) < len(c.spec.Stages):
		return c.spec.Stages[i].Name
	case c.spec.Gather != nil:
		return c.spec.Gather.Name
	case c.spec.Sink != nil:
		return "sink"
	default:
		return "route"
	}
}

// inboxOf returns the inbox of a lane.
func (c *channel) inboxOf(lane int) *inbox {
	if len(c.inboxes) == 1 {
		return c.inboxes[0]
	}

	return c.inboxes[lane]
}

// holds says whether the breaker keeps a message that has failed.
func (c *channel) holds(e *entry, err error) bool {
	return c.breaker.holds(err) && (c.restless.Load() == 0 || !e.t.stale())
}

// again decides whether a failure of e is retried in place, and how long to wait. attempts counts this one.
func (c *channel) again(e *entry, err error, attempts int, now int64) (time.Duration, bool) {
	if c.restless.Load() > 0 && e.t.stale() {
		return 0, false
	}

	if c.inPlace {
		o := c.plan.Job.Retry.Decide(attempts, err)

		return o.Delay, o.Verdict == pipeline.Retry
	}

	delay, marked := pipeline.RetryDelay(err)
	fits := now+int64(delay) <= e.since+int64(c.spec.Timeout)

	return delay, marked && fits && !pipeline.IsRejected(err)
}

// wake tells an idle lane that there is work; nil is nobody.
func (c *channel) wake(l *lane) {
	if l != nil {
		c.root.Send(l.pid, wake{})
	}
}

// spread sends entries to the lanes of a channel. Each sender has its own, since it holds the buckets.
type spread struct {
	buckets [][]entry
}

// deliver hands entries to a channel's inboxes, in order, and wakes who must be woken. The slice may be reused afterwards.
func (s *spread) deliver(c *channel, entries []entry) {
	if len(entries) == 0 {
		return
	}

	if len(c.inboxes) == 1 {
		c.wake(c.inboxes[0].push(entries))

		return
	}

	for len(s.buckets) < len(c.inboxes) {
		s.buckets = append(s.buckets, nil)
	}

	for _, e := range entries {
		i := pipeline.LaneOf(e.m, c.spec.Order, len(c.inboxes))
		s.buckets[i] = append(s.buckets[i], e)
	}

	for i, in := range c.inboxes {
		if len(s.buckets[i]) > 0 {
			c.wake(in.push(s.buckets[i]))
			clear(s.buckets[i])
			s.buckets[i] = s.buckets[i][:0]
		}
	}
}

// clock gives the time of one job in nanoseconds since its start; it never jumps.
type clock struct{ start time.Time }

func newClock() *clock { return &clock{start: time.Now()} }

func (c *clock) now() int64 { return int64(time.Since(c.start)) }

// at turns a reading of the clock into a time.
func (c *clock) at(ns int64) time.Time { return c.start.Add(time.Duration(ns)) }
