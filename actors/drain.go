package actors

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/pipeline"
)

// drain begins the end of the job: sources first. Later calls can only shorten it.
func (e *engine) drain(who *actor.PID, budget time.Duration, err error) {
	if who != nil {
		e.drainers = append(e.drainers, who)
	}

	if e.report.Err == nil {
		e.report.Err = err
	}

	if budget == 0 && err == nil {
		budget = e.opts.DrainBudget
	}

	by := e.clock.now() + int64(max(budget, 0))

	switch {
	case e.state < engineDraining && e.opening != nil:
		e.began, e.by, e.state = e.clock.now(), by, engineDraining

		go func(o *opening) {
			m := o.cutShort(func() { e.cancel(errStopping) })
			e.root.Send(e.self, m)
		}(e.opening)
	case e.state < engineDraining:
		e.began, e.by, e.state = e.clock.now(), by, engineDraining
		e.wait("what is in flight to end")
		e.closeQueues()
	case e.state == engineDraining && e.opening == nil && by < e.by:
		e.by = by
		e.closeQueues()
	}
}

// stopLanes gives up what still runs and closes the lanes.
func (e *engine) stopLanes() {
	e.state = engineStopping
	e.wait("its stages to close")
	e.cancelLanes(errStopping)

	for _, ref := range e.lanes {
		e.root.Stop(ref.pid)
	}

	if len(e.lanes) == 0 {
		e.leave()

		return
	}

	e.timer = time.AfterFunc(laneGrace, func() { e.root.Send(e.self, &graceOver{}) })
}

// leave closes the sinks and leaves the group.
func (e *engine) leave() {
	e.state = engineLeaving
	e.wait("its sinks to close, and its group to let it go")

	if e.timer != nil {
		e.timer.Stop()
	}

	go func() {
		err := closeSinks(e.opened)

		ctx, cancel := context.WithTimeout(e.ctx, leaveTimeout)
		defer cancel()

		if e.member != nil {
			if leave := e.member.Leave(ctx); leave != nil {
				err = errors.Join(err, fmt.Errorf("actors: leave the group: %w", leave))
			}
		}

		e.root.Send(e.self, &left{err: err})
	}()
}

// closeSinks closes sinks, one after the other. One that takes too long is left to itself, as are those after it.
func closeSinks(sinks []pipeline.Sink) error {
	patience := time.NewTimer(closeTimeout)
	defer patience.Stop()

	var errs []error

	for i, s := range sinks {
		closed := make(chan error, 1)

		go func() { closed <- closeSink(s) }()

		select {
		case err := <-closed:
			errs = append(errs, err)
		case <-patience.C:
			return errors.Join(append(errs, fmt.Errorf("actors: close: %T does not return within %s; it is left to itself, "+
				"and so are %d sinks after it", s, closeTimeout, len(sinks)-i-1))...)
		}
	}

	return errors.Join(errs...)
}

func closeSink(s pipeline.Sink) error {
	c, ok := s.(io.Closer)
	if !ok {
		return nil
	}

	if err := pipeline.Guard("sink", "close", c.Close); err != nil {
		return fmt.Errorf("actors: close: %w", err)
	}

	return nil
}

// finish reports and stops.
func (e *engine) finish(c actor.Context, err error) {
	e.state = engineStopped
	e.report.Took = time.Duration(e.clock.now() - e.began)
	e.report.Err = errors.Join(e.report.Err, err)
	e.report.Clean = e.report.Err == nil && e.report.UnfinishedCount == 0
	e.cancel(errStopping)

	report := e.report
	for _, who := range e.drainers {
		e.root.Send(who, &report)
	}

	e.publish(&JobStopped{In: e.in(), Report: &report})

	if e.onStop != nil {
		e.onStop(&report)
	}

	c.Stop(c.Self())
}

// abort is what an engine does that is stopped from outside without a drain: everything in flight is left unfinished.
func (e *engine) abort() {
	if e.state == engineStopped {
		return
	}

	member, sinks := e.member, e.opened
	if e.state == engineLeaving {
		sinks = nil // they are being closed
	}

	e.state = engineStopped
	e.cancelLanes(errStopping)

	opening := e.opening

	stops := make([]*actor.Future, 0, len(e.lanes))
	for _, ref := range e.lanes {
		stops = append(stops, e.root.StopFuture(ref.pid))
	}

	report := e.report
	report.Err = errors.Join(report.Err, errAborted)

	go func() {
		if opening != nil {
			m := opening.cutShort(func() { e.cancel(errStopping) })
			member, sinks = m.member, m.opened

			if errors.Is(m.err, errDeaf) {
				report.Err = errors.Join(report.Err, m.err)
			}
		}

		awaitLanes(stops)

		err := closeSinks(sinks)

		if member != nil {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(e.ctx), leaveTimeout)
			defer cancel()

			err = errors.Join(err, member.Leave(ctx))
		}

		e.cancel(errStopping)

		report.Err = errors.Join(report.Err, err)
		e.publish(&JobStopped{In: e.in(), Report: &report})

		if e.onStop != nil {
			e.onStop(&report)
		}
	}()
}

// awaitLanes gives stopped lanes their grace: sinks close after the last write.
func awaitLanes(stops []*actor.Future) {
	done := make(chan struct{})

	go func() {
		defer close(done)

		for _, f := range stops {
			_ = f.Wait() // it fails for a hung lane, which is not waited for
		}
	}()

	select {
	case <-done:
	case <-time.After(laneGrace):
	}
}

var errAborted = errors.New("actors: the engine was stopped without a drain")
