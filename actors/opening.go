package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// opening is the start of a job under way: on a goroutine of its own its sinks open, one after the other, and its group takes
// it in. Who ends the job meanwhile cuts it short.
type opening struct {
	// ctx is what sinks open with, and stop ends it. The group is joined with the job's own context, since a join that is cut
	// short may have taken effect, and nobody could undo it.
	ctx  context.Context
	stop context.CancelCauseFunc
	// done is closed when the start is over; result is how, from then on.
	done   chan struct{}
	result *joined

	mu sync.Mutex
	// opened are the sinks that are open, now is the channel whose sink opens; empty when none does. Guarded by mu.
	opened []pipeline.Sink
	now    string
	// left says that nobody waits for the sink that opens any more; guarded by mu.
	left bool
}

func newOpening(ctx context.Context) *opening {
	o := &opening{done: make(chan struct{})}
	o.ctx, o.stop = context.WithCancelCause(ctx)

	return o
}

// errDeaf says that a sink is left to itself.
var errDeaf = errors.New("it has not opened, and does not heed its context, which ended with the job; it is left to itself")

// run opens the sinks and joins the group.
func (o *opening) run(e *engine) {
	m := &joined{}

	if m.err = o.openSinks(e); m.err == nil {
		e.wait("its group to take it in")

		m.member, m.err = e.broker.Join(e.ctx, consumer.Subscription{
			Group: e.plan.Job.Source.Group, Topics: e.plan.Job.Source.Topics, Broadcast: e.plan.Job.Source.Broadcast,
			Instance: e.opts.Instance,
		})
	}

	m.opened = o.opened // nobody else changes it
	o.result = m
	close(o.done)
	o.stop(nil)

	if !o.left { // nobody else changes that either, once nothing opens
		e.root.Send(e.self, m)
	}
}

// openSinks opens the sinks until one fails, or the opening is cut short.
func (o *opening) openSinks(e *engine) error {
	for i := range e.plan.Job.Channels {
		c := &e.plan.Job.Channels[i]
		if c.Sink == nil {
			continue
		}

		if !o.begin(c.Name) {
			return errStopping
		}

		e.wait("the sink of channel " + c.Name + " to open")

		err := pipeline.Guard(c.Name, "sink", func() error {
			if opener, ok := c.Sink.(pipeline.Opener); ok {
				return opener.Open(o.ctx)
			}

			return nil
		})
		if err != nil {
			o.end(nil)

			return fmt.Errorf("actors: open: %w", pipeline.AsStageError(c.Name, "sink", err))
		}

		if !o.end(c.Sink) {
			return errors.Join(errStopping, closeSink(c.Sink)) // nobody else knows that it has opened after all
		}
	}

	if !o.begin("") {
		return errStopping
	}

	return nil
}

// begin notes which channel's sink opens from now on; it reports whether it may.
func (o *opening) begin(channel string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.ctx.Err() != nil {
		return false
	}

	o.now = channel

	return true
}

// end notes that a sink has opened, or, when it is nil, that one has failed to. It reports whether somebody still waits for it.
func (o *opening) end(sink pipeline.Sink) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.now = ""

	if sink != nil && !o.left {
		o.opened = append(o.opened, sink)
	}

	return !o.left
}

// cutShort ends the start of a job that is to stop, and returns how far it came. A sink that opens has a grace to heed its
// context, and is left to itself after that; a join has longer, and then cancelJoin is called.
func (o *opening) cutShort(cancelJoin func()) *joined {
	o.stop(errStopping)

	if o.over(laneGrace) {
		return o.result
	}

	if m := o.leave(); m != nil {
		return m
	}

	if !o.over(leaveTimeout) {
		cancelJoin()
		<-o.done
	}

	return o.result
}

// over waits for the end of the start, but not for longer than patience.
func (o *opening) over(patience time.Duration) bool {
	timer := time.NewTimer(patience)
	defer timer.Stop()

	select {
	case <-o.done:
		return true
	case <-timer.C:
		return false
	}
}

// leave gives up a sink that opens and does not heed its context; it returns nil when none does.
func (o *opening) leave() *joined {
	o.mu.Lock()
	defer o.mu.Unlock()

	if o.now == "" {
		return nil
	}

	o.left = true

	return &joined{opened: o.opened, err: fmt.Errorf("actors: open: %w", pipeline.AsStageError(o.now, "sink", errDeaf))}
}
