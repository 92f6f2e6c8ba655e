package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// seek makes a queue begin again at another offset.
func (e *engine) seek(c actor.Context, m *Seek) {
	q := e.queues[m.Queue]

	if err := e.seekable(q, m); err != nil {
		e.answer(c, err)

		return
	}

	q.seek = m

	if c.Sender() != nil {
		q.seekers = append(q.seekers, c.Sender())
	}

	if q.slot == nil {
		// The start is being looked up; what comes of that is overtaken.
		q.closing = true
		e.commitSeek(q)

		return
	}

	e.stopPulling(q)
}

func (e *engine) seekable(q *owned, m *Seek) error {
	switch {
	case m.Offset < 0:
		return fmt.Errorf("actors: seek %s: offset %d is negative", m.Queue, m.Offset)
	case e.state != engineRunning:
		return fmt.Errorf("actors: seek %s: %w", m.Queue, errNotRunning)
	case q == nil:
		return e.notOwned("seek", m.Queue)
	case q.closing && q.seek == nil:
		return fmt.Errorf("actors: seek %s: %w", m.Queue, consumer.ErrNotOwner)
	default:
		return nil
	}
}

// commitSeek stores the sought offset.
func (e *engine) commitSeek(q *owned) {
	q.slot, q.puller = nil, nil
	cp := consumer.Checkpoint{Next: q.seek.Offset}
	lease := q.lease

	go func() {
		ctx, cancel := context.WithTimeout(e.ctx, commitTimeout)
		defer cancel()

		e.root.Send(e.self, &sought{q: q, cp: cp, err: e.member.Commit(ctx, lease, cp)})
	}()
}

// sought begins to pull at the sought offset, or again where the broker's store says when it could not be committed.
func (e *engine) sought(c actor.Context, m *sought) {
	q := m.q
	if e.queues[q.lease.Queue] != q || q.slot != nil {
		return
	}

	for _, who := range q.seekers {
		e.root.Send(who, &Done{Err: m.err})
	}

	q.seek, q.seekers, q.closing = nil, nil, false

	switch {
	case e.state != engineRunning:
	case m.err == nil && e.restless[q.lease.Queue] == 0:
		e.pullFrom(c, q, m.cp)
	case m.err == nil:
		e.seen[q.lease.Queue] = m.cp.Next // it was asked for, so it is no rewind
		e.begin(q.lease)
	default:
		e.begin(q.lease)
	}
}

// pause stops or resumes the pulls of a queue.
func (e *engine) pause(c actor.Context, queue pipeline.Queue, on bool, why string) {
	q := e.queues[queue]
	if q == nil {
		e.answer(c, e.notOwned("pause", queue))

		return
	}

	if on && why == "" {
		why = "paused"
	}

	q.paused = why

	if q.puller != nil {
		e.root.Send(q.puller, &setPaused{on: on, why: why})
	}

	e.answer(c, nil)
}

func (e *engine) answer(c actor.Context, err error) {
	if c.Sender() != nil {
		c.Respond(&Done{Err: err})
	}
}

var errNotRunning = errors.New("the job is not running")

// notOwned says that a queue is not this job's, and which are.
func (e *engine) notOwned(what string, queue pipeline.Queue) error {
	names := make([]string, 0, len(e.queues))
	for q := range e.queues {
		names = append(names, q.String())
	}

	slices.Sort(names)

	return fmt.Errorf("actors: %s %s: %w; this job owns %v", what, queue, consumer.ErrNotOwner, names)
}
