package actors

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// engine is the top actor of one job. It opens sinks and lanes, joins the group, follows the assignment, and ends it all
// in the order of the data. It never blocks: whatever may take time runs on a goroutine that sends its result back.
type engine struct {
	*job

	self  *actor.PID
	state engineState
	lanes map[*lane]*laneRef
	// old are lanes that were fenced or replaced.
	old    map[*lane]*actor.PID
	queues map[pipeline.Queue]*owned
	// restless counts former ownerships of a queue of which something still runs; it is not begun again before that ends.
	restless map[pipeline.Queue]int
	// wanted are the leases of the present assignment.
	wanted map[pipeline.Queue]consumer.Lease
	// seen is the commit watermark that this job has committed or begun at, by queue, to notice a broker that goes backward.
	seen map[pipeline.Queue]pipeline.Offset
	// spawned numbers the pull-queue actors, since a name is free only when its old owner is wholly gone.
	spawned int
	// opened are the sinks that have been opened.
	opened []pipeline.Sink
	// opening is the start while it is under way; nil afterwards.
	opening  *opening
	drainers []*actor.PID
	// warning is what is wrong with the group; empty when nothing is.
	warning string
	// step is what the job as a whole waits for, while that is not its queues.
	step   atomic.Pointer[step]
	began  int64
	by     int64
	timer  *time.Timer
	report Report
	onStop func(*Report)
}

type engineState uint8

const (
	engineStarting engineState = iota
	engineRunning
	// engineDraining: the queues are closing.
	engineDraining
	// engineStopping: the lanes are closing.
	engineStopping
	// engineLeaving: sinks are closed and the group is left.
	engineLeaving
	engineStopped
)

// laneRef is the engine's knowledge of a lane.
type laneRef struct {
	pid   *actor.PID
	ready bool
}

// laneGrace is how long a stopping job waits for cancelled calls to return, closeTimeout for its sinks to close, and leaveTimeout
// for its group. Guesses.
const (
	laneGrace    = 2 * time.Second
	closeTimeout = 30 * time.Second
	leaveTimeout = 10 * time.Second
)

// The engine's messages from its goroutines and actors.
type (
	joined struct {
		internal

		member consumer.Member
		opened []pipeline.Sink
		err    error
	}
	assigned struct {
		internal

		a consumer.Assignment
	}
	left struct {
		internal

		err error
	}
	giveUp struct {
		internal

		err error
	}
	// graceOver says that the lanes have had their time.
	graceOver struct{ internal }
	slotLost  struct {
		internal

		slot *slot
	}
)

// Receive is the engine's behaviour.
func (e *engine) Receive(c actor.Context) {
	defer e.contain("the engine")

	switch m := c.Message().(type) {
	case *actor.Started:
		e.start(c)
	case *joined:
		e.joined(c, m)
	case *laneReady, *laneFailed, *laneClosed, *laneHung, *graceOver:
		e.onLane(c, m)
	case *assigned:
		e.assigned(m.a)
	case *found, *pullsStopped, *slotClosed, *slotLost, *slotQuiet, *sought, *findAgain:
		e.onQueue(c, m)
	case *GetSnapshot:
		e.snapshot(c)
	case *Pause:
		e.pause(c, m.Queue, true, m.Why)
	case *Resume:
		e.pause(c, m.Queue, false, "")
	case *Seek:
		e.seek(c, m)
	case *Drain:
		e.drain(c.Sender(), m.Budget, nil)
	case *giveUp:
		e.drain(nil, e.opts.RevokeBudget, m.err)
	case *left:
		e.finish(c, m.err)
	case *actor.Stopping:
		e.abort()
	}
}

// start opens the sinks and joins the group.
func (e *engine) start(c actor.Context) {
	e.self, e.engine = c.Self(), c.Self()
	e.system = c.ActorSystem()
	e.root = e.system.Root
	e.opening = newOpening(e.ctx)

	go e.opening.run(e)
}

// joined spawns the tracker and the lanes.
func (e *engine) joined(c actor.Context, m *joined) {
	if e.opening == nil {
		return // it has been cut short, and was over all the same
	}

	e.opened, e.member, e.opening = m.opened, m.member, nil

	if e.state != engineStarting {
		if errors.Is(m.err, errDeaf) {
			e.report.Err = m.err
		} else if m.err != nil {
			e.log.Info("the start was cut short", zap.Error(m.err))
		}

		e.leave()

		return
	}

	if m.err != nil {
		e.drain(nil, 0, m.err)

		return
	}

	tracker, err := c.SpawnNamed(e.propsOf(&tracker{job: e.job}), "tracker")
	if err != nil {
		e.drain(nil, 0, err)

		return
	}

	e.tracker = tracker
	e.wait("its stages to open")
	e.wire()

	for _, ch := range e.channels {
		for num := range ch.spec.Lanes {
			e.spawnLane(c, newLane(e.lanesCtx, ch, num), "")
		}
	}
}

// spawnLane spawns a lane beside the engine; see lane.
func (e *engine) spawnLane(c actor.Context, l *lane, suffix string) {
	pid, err := e.root.SpawnNamed(e.propsOf(l), c.Self().GetId()+"/channel/"+l.name()+suffix)
	if err != nil {
		e.drain(nil, 0, fmt.Errorf("actors: spawn a lane: %w", err))

		return
	}

	e.lanes[l] = &laneRef{pid: pid}
}

// onLane keeps the books of the lanes.
func (e *engine) onLane(c actor.Context, message any) {
	switch m := message.(type) {
	case *laneReady:
		e.laneReady(m.lane)
	case *laneFailed:
		e.drain(nil, e.opts.RevokeBudget, fmt.Errorf("actors: open: %w", m.err))
	case *laneHung:
		e.old[m.old] = e.lanes[m.old].pid
		delete(e.lanes, m.old)
		e.spawned++
		e.root.Stop(e.old[m.old])

		if e.state < engineStopping {
			e.spawnLane(c, m.fresh, fmt.Sprintf("~%d", e.spawned))
		}
	case *laneClosed:
		e.laneClosed(m)
	case *graceOver:
		if e.state == engineStopping {
			e.leave()
		}
	}
}

func (e *engine) laneReady(l *lane) {
	e.lanes[l].ready = true
	e.root.Send(e.tracker, &laneReplaced{lane: l})
	e.root.Send(l.pid, wake{})

	if e.state == engineDraining {
		e.root.Send(l.pid, &flush{by: e.by})
	}

	if e.state != engineStarting {
		return
	}

	for _, ref := range e.lanes {
		if !ref.ready {
			return
		}
	}

	e.state = engineRunning
	e.wait("its first assignment")
	e.publish(&JobStarted{In: e.in()})

	go e.follow()
}

func (e *engine) laneClosed(m *laneClosed) {
	if m.err != nil {
		e.log.Warn("closing a lane failed", zap.String("lane", m.lane.name()), zap.Error(m.err))
	}

	if e.old[m.lane] != nil {
		delete(e.old, m.lane)
		hung := int(e.hung.Add(-1))
		e.publish(&LaneReturned{In: e.in(), Channel: m.lane.ch.spec.Name, Lane: m.lane.num, Hung: hung})

		return
	}

	delete(e.lanes, m.lane)

	if e.state == engineStopping && len(e.lanes) == 0 {
		e.leave()
	}
}

// follow waits for assignments and hands them to the engine. It ends with the job.
func (e *engine) follow() {
	var known uint64

	for tries := 0; ; {
		a, err := e.member.Assigned(e.ctx, known)

		switch {
		case e.ctx.Err() != nil, errors.Is(err, consumer.ErrLeft):
			return
		case err == nil:
			known, tries = a.Generation, 0
			e.root.Send(e.self, &assigned{a: a})

			continue
		}

		tries++
		pause := backoff(e.opts.PullBackoff, maxPullBackoff, tries)
		e.log.Warn("asking for the assignment failed; the present one is kept", zap.Duration("again", pause), zap.Error(err))

		select {
		case <-e.ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
