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
	case e.state < engineDraining:
		e.began, e.by = e.clock.now(), by
		joining := e.state == engineStarting && e.member == nil && err == nil
		e.state = engineDraining
		e.wait("what is in flight to end")

		if !joining {
			e.closeQueues()
		}
	case e.state == engineDraining && by < e.by:
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
		ctx, cancel := context.WithTimeout(e.ctx, leaveTimeout)
		defer cancel()

		err := closeSinks(e.opened)

		if e.member != nil {
			if leave := e.member.Leave(ctx); leave != nil {
				err = errors.Join(err, fmt.Errorf("actors: leave the group: %w", leave))
			}
		}

		e.root.Send(e.self, &left{err: err})
	}()
}

func closeSinks(sinks []pipeline.Sink) error {
	var errs []error

	for _, s := range sinks {
		if c, ok := s.(io.Closer); ok {
			errs = append(errs, pipeline.Guard("sink", "close", c.Close))
		}
	}

	if err := errors.Join(errs...); err != nil {
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
			// A join that is cut short may have taken effect, and nobody could undo it.
			patience := time.AfterFunc(leaveTimeout, func() { e.cancel(errStopping) })
			m := <-opening
			member, sinks = m.member, m.opened

			patience.Stop()
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
