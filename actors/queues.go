package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// owned is a queue of the assignment, from the moment that its start is looked up until it has been given up.
type owned struct {
	lease consumer.Lease
	// slot and puller are there while the queue is pulled; slot is nil while its start is looked up.
	slot   *slot
	puller *actor.PID
	// closing: pulling has been stopped; stopped: and the puller has said so.
	closing, stopped bool
	// since is when its start was first looked up, or its end begun, by the clock.
	since int64
	// err is why the start could not be found, tries how often; behind is since when the broker's answer is low, which is
	// too low.
	err    error
	tries  int
	retry  int64
	behind int64
	low    pipeline.Offset
	// seek is what to do when the queue has closed; nil means to give it up.
	seek    *Seek
	seekers []*actor.PID
	paused  string
}

// Results of the engine's look-ups.
type (
	found struct {
		internal

		lease  consumer.Lease
		cp     consumer.Checkpoint
		stored bool
		err    error
	}
	findAgain struct {
		internal

		lease consumer.Lease
	}
	sought struct {
		internal

		q   *owned
		cp  consumer.Checkpoint
		err error
	}
)

const findTimeout = 30 * time.Second

// assigned applies an assignment: what is no longer in it is given up, what is new in it is begun.
func (e *engine) assigned(a consumer.Assignment) {
	if e.state != engineRunning {
		return
	}

	e.warn(a.Warning)
	e.step.Store(&step{what: "a queue: other members of its group have them all", since: e.clock.now()})
	e.wanted = make(map[pipeline.Queue]consumer.Lease, len(a.Leases))
	for _, l := range a.Leases {
		e.wanted[l.Queue] = l
	}

	for queue, q := range e.queues {
		if l, ok := e.wanted[queue]; !ok || l.Epoch != q.lease.Epoch {
			e.revoke(q)
		}
	}

	for _, l := range a.Leases {
		if e.queues[l.Queue] == nil {
			e.begin(l)
		}
	}
}

// begin looks up where to start in a queue. The broker's store is asked, never memory.
func (e *engine) begin(l consumer.Lease) {
	if e.queues[l.Queue] == nil {
		e.queues[l.Queue] = &owned{lease: l, since: e.clock.now()}
	}

	if e.restless[l.Queue] > 0 {
		e.queues[l.Queue].err = errRestless

		return
	}

	start := e.plan.Job.Source.Start
	if l.Queue.Topic == consumer.RetryTopic(e.plan.Job.Source.Group) {
		start = pipeline.First
	}

	go func() {
		ctx, cancel := context.WithTimeout(e.ctx, findTimeout)
		defer cancel()

		m := &found{lease: l, stored: true}
		m.cp, m.err = e.member.Stored(ctx, l.Queue)

		if errors.Is(m.err, consumer.ErrNoCheckpoint) {
			m.stored = false
			m.cp.Next, m.err = e.member.Find(ctx, l.Queue, start)
		}

		if m.err == nil {
			m.err = m.cp.Validate()
		}

		e.root.Send(e.self, m)
	}()
}

// onQueue goes on with one queue.
func (e *engine) onQueue(c actor.Context, message any) {
	switch m := message.(type) {
	case *found:
		if q := e.queues[m.lease.Queue]; q != nil && q.lease == m.lease && q.slot == nil && !q.closing {
			e.found(c, q, m)
		}
	case *findAgain:
		if q := e.queues[m.lease.Queue]; q != nil && q.lease == m.lease && q.slot == nil && !q.closing {
			e.begin(q.lease)
		}
	case *pullsStopped:
		if q := e.bySlot(m.slot); q != nil {
			q.stopped = true
			e.closeStopped(q)
		}
	case *slotLost:
		if q := e.bySlot(m.slot); q != nil {
			q.closing, q.stopped = true, true
			q.seek = nil
		}
	case *slotQuiet:
		e.quiet(m.slot.lease.Queue)
	case *slotClosed:
		if q := e.bySlot(m.slot); q != nil {
			e.closed(c, q, m)
		}
	case *sought:
		e.sought(c, m)
	}
}

var errRestless = errors.New("actors: a message of the queue's former ownership still runs; its deadline ends that")

// quiet begins a queue that has waited for its former run to end, so that no message runs twice at a time.
func (e *engine) quiet(queue pipeline.Queue) {
	e.restless[queue]--
	if e.restless[queue] > 0 {
		return
	}

	delete(e.restless, queue)

	if q := e.queues[queue]; q != nil && q.slot == nil && !q.closing && e.state == engineRunning {
		q.err = nil
		e.begin(q.lease)
	}
}

func (e *engine) bySlot(s *slot) *owned {
	if q := e.queues[s.lease.Queue]; q != nil && q.slot == s {
		return q
	}

	return nil
}

// found begins to pull a queue, unless its start makes no sense.
func (e *engine) found(c actor.Context, q *owned, m *found) {
	err := m.err
	if err == nil {
		err = e.checkRewind(q, m)
	} else {
		q.behind = 0
	}

	if err != nil {
		q.err = err
		q.tries++
		pause := backoff(e.opts.PullBackoff, maxPullBackoff, q.tries)

		if q.behind != 0 {
			// Whether the answer stays the same can only be said of answers.
			pause = min(pause, jitter(e.opts.RewindPatience/rewindLooks))
		}

		q.retry = e.clock.now() + int64(pause)

		e.log.Warn("a queue cannot be started yet", zap.Stringer("queue", q.lease.Queue), zap.Duration("again", pause),
			zap.Error(err))
		e.publish(&QueueWaits{In: e.in(), Queue: q.lease.Queue, Err: err, Retry: pause})
		time.AfterFunc(pause, func() { e.root.Send(e.self, &findAgain{lease: m.lease}) })

		return
	}

	if m.stored {
		e.pullFrom(c, q, m.cp)
	} else {
		e.commitStart(q, m)
	}
}

// commitStart stores where a group begins in a queue, before anything is pulled: a job that dies before its first
// checkpoint would otherwise begin anew, and where it begins at the end it would skip what it had not finished.
func (e *engine) commitStart(q *owned, m *found) {
	e.seen[q.lease.Queue] = m.cp.Next

	go func() {
		ctx, cancel := context.WithTimeout(e.ctx, commitTimeout)
		defer cancel()

		err := e.member.Commit(ctx, m.lease, m.cp)
		e.root.Send(e.self, &found{lease: m.lease, cp: m.cp, stored: true, err: err})
	}()
}

// pullFrom gives a queue a new slot, a window and a pull-queue actor.
func (e *engine) pullFrom(c actor.Context, q *owned, cp consumer.Checkpoint) {
	q.slot = &slot{lease: q.lease}
	q.closing, q.stopped, q.err, q.tries, q.retry, q.behind = false, false, nil, 0, 0, 0
	e.seen[q.lease.Queue] = cp.Next
	e.spawned++

	p := newPuller(e.job, q.slot, cp)
	name := fmt.Sprintf("pull/%s.%d", q.lease.Queue, e.spawned)

	pid, err := c.SpawnNamed(e.propsOf(p), name)
	if err != nil {
		e.drain(nil, 0, fmt.Errorf("actors: spawn a pull-queue actor: %w", err))

		return
	}

	q.puller, q.slot.puller = pid, pid
	e.publish(&QueueAssigned{
		In: e.in(), Queue: q.lease.Queue, Epoch: q.lease.Epoch, From: cp.Next, Done: doneLen(cp),
	})
	e.root.Send(e.tracker, &own{slot: q.slot, from: cp})

	if q.paused != "" {
		e.root.Send(pid, &setPaused{on: true, why: q.paused})
	}

	e.root.Send(pid, beginPulls{})
}

// revoke gives up a queue that the assignment has taken away.
func (e *engine) revoke(q *owned) {
	q.seek = nil

	if q.slot == nil {
		e.drop(q)
		e.release(q.lease)

		return
	}

	e.stopPulling(q)
}

// drop forgets a queue and tells those who wait for a seek of it.
func (e *engine) drop(q *owned) {
	delete(e.queues, q.lease.Queue)

	for _, who := range q.seekers {
		e.root.Send(who, &Done{Err: fmt.Errorf("actors: seek %s: %w", q.lease.Queue, consumer.ErrNotOwner)})
	}

	q.seekers = nil
}

func (e *engine) stopPulling(q *owned) {
	if !q.closing {
		q.closing, q.since = true, e.clock.now()
		e.root.Send(q.puller, stopPulls{})
	}
}

// closeStopped lets the tracker close a queue that is no longer pulled; in a drain all of them at once.
func (e *engine) closeStopped(q *owned) {
	if e.state == engineRunning {
		by := e.clock.now() + int64(e.opts.RevokeBudget)
		e.root.Send(e.tracker, &closeSlots{slots: []*slot{q.slot}, by: by})

		return
	}

	e.closeQueues()
}

// closeQueues closes every queue for a drain: pulling stops first, then what is in flight ends.
func (e *engine) closeQueues() {
	var slots []*slot

	for _, q := range e.queues {
		if q.slot == nil {
			e.drop(q)

			continue
		}

		e.stopPulling(q)

		if q.stopped {
			slots = append(slots, q.slot)
		}
	}

	switch {
	case len(e.queues) == 0:
		e.stopLanes()
	case len(slots) == len(e.queues):
		e.root.Send(e.tracker, &closeSlots{slots: slots, by: e.by, drain: true})
	}
}

// closed is called when the tracker has forgotten a queue.
func (e *engine) closed(c actor.Context, q *owned, m *slotClosed) {
	c.Stop(q.puller)

	if m.running > 0 {
		e.restless[q.lease.Queue]++
	}

	e.seen[q.lease.Queue] = m.committed.Next
	e.publish(&QueueRevoked{
		In: e.in(), Queue: q.lease.Queue, Epoch: q.lease.Epoch, Committed: m.committed.Next, Unfinished: m.leftCount,
		Err: m.err,
	})

	if e.state == engineRunning && q.seek != nil {
		e.commitSeek(q)

		return
	}

	e.drop(q)

	if e.state == engineRunning {
		e.release(q.lease)

		if l, ok := e.wanted[q.lease.Queue]; ok && l.Epoch != q.lease.Epoch {
			e.begin(l)
		}

		return
	}

	e.closedInDrain(q, m)
}

func (e *engine) closedInDrain(q *owned, m *slotClosed) {
	if e.report.Committed == nil {
		e.report.Committed = make(map[pipeline.Queue]pipeline.Offset)
	}

	e.report.Committed[q.lease.Queue] = m.committed.Next
	e.report.UnfinishedCount += m.leftCount
	room := maxUnfinished - len(e.report.Unfinished)
	e.report.Unfinished = append(e.report.Unfinished, m.left[:min(room, len(m.left))]...)

	if m.err != nil {
		e.report.Err = errors.Join(e.report.Err, fmt.Errorf("actors: the last commit of %s: %w", q.lease.Queue, m.err))
	}

	if len(e.queues) == 0 && e.state == engineDraining {
		e.stopLanes()
	}
}

// release tells the broker that a queue is free. When that fails the broker finds out by its own patience.
func (e *engine) release(l consumer.Lease) {
	go func() {
		ctx, cancel := context.WithTimeout(e.ctx, commitTimeout)
		defer cancel()

		if err := e.member.Release(ctx, l); err != nil {
			e.log.Warn("releasing a queue failed", zap.Stringer("queue", l.Queue), zap.Error(err))
		}
	}()
}
