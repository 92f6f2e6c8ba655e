package actors

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/pipeline"
)

// snapshotRequest carries what the engine knows to the tracker, which answers the one who asked.
type snapshotRequest struct {
	internal

	to *actor.PID
	s  *Snapshot
}

// snapshot answers GetSnapshot, through the tracker when there is one.
func (e *engine) snapshot(c actor.Context) {
	if c.Sender() == nil {
		return
	}

	s := &Snapshot{
		Job: e.plan.Job.Name, At: time.Now(), Hung: int(e.hung.Load()),
		State:  [...]string{"starting", "running", "draining", "stopping", "stopping", "stopped"}[e.state],
		Queues: []QueueStatus{}, Channels: []ChannelStatus{}, Warning: e.warning,
	}
	s.Waits, s.WaitsSince = e.waits()

	for _, q := range e.queues {
		st := QueueStatus{
			Queue: q.lease.Queue, Epoch: q.lease.Epoch, Paused: q.paused, Waits: "its start", WaitsSince: e.clock.at(q.since),
		}

		switch {
		case q.closing:
			st.Waits = waitsEnd
		case errors.Is(q.err, errRestless):
			st.Waits = "its former run"
		case q.behind != 0:
			st.Waits = "its offset to come back"
		}

		if q.err != nil {
			st.Err = q.err.Error()

			if q.retry != 0 {
				st.RetryAt = e.clock.at(q.retry)
			}
		}

		s.Queues = append(s.Queues, st)
	}

	slices.SortFunc(s.Queues, func(a, b QueueStatus) int {
		return cmp.Or(cmp.Compare(a.Queue.Topic, b.Queue.Topic), cmp.Compare(a.Queue.Broker, b.Queue.Broker),
			cmp.Compare(a.Queue.ID, b.Queue.ID))
	})

	if e.tracker == nil || e.state == engineStopped {
		c.Respond(s)

		return
	}

	e.root.Send(e.tracker, &snapshotRequest{to: c.Sender(), s: s})
}

// snapshot fills in what the tracker and the lanes know.
func (t *tracker) snapshot(m *snapshotRequest) {
	now := t.clock.now()
	m.s.Counts = t.counts

	if n, first := t.returns.away.look(now); n > 0 {
		m.s.Away, m.s.BackAt = n, t.clock.at(first)
	}

	for _, q := range t.queues {
		i := slices.IndexFunc(m.s.Queues, func(s QueueStatus) bool { return s.Queue == q.slot.lease.Queue })
		if i >= 0 {
			t.queueStatus(q, &m.s.Queues[i])
		}
	}

	for _, c := range t.channels {
		m.s.Channels = append(m.s.Channels, t.channelStatus(c, now))
	}

	t.root.Send(m.to, m.s)
}

func (t *tracker) queueStatus(q *tracked, s *QueueStatus) {
	cp := q.window.Checkpoint()
	s.Committed, s.Min, s.Next = q.committed.Next, cp.Next, q.window.Next()
	s.Above = doneLen(cp)
	s.InFlight, s.Bytes = q.window.InFlight()
	s.MovedAt = t.clock.at(q.moved)
	closing, closingSince := s.Waits == waitsEnd, s.WaitsSince

	q.slot.pull.update(func(p *pullStatus) {
		s.Next, s.End, s.Waits, s.Paused = max(p.next, s.Next), max(p.end, s.Next), p.waits, p.paused
		s.WaitsSince = time.Time{}

		if p.waits != "" {
			s.WaitsSince = t.clock.at(p.since)
		}

		if p.waits == waitsCredit {
			s.Limit = p.limit
		}

		if p.asked != 0 {
			s.AskedAt = t.clock.at(p.asked)
		}

		if p.err != nil {
			s.Err, s.RetryAt = p.err.Error(), t.clock.at(p.retry)
		}
	})

	if closing {
		s.Waits, s.WaitsSince = waitsEnd, closingSince
	}

	if q.commitErr != nil {
		s.CommitErr, s.CommitErrSince = q.commitErr.Error(), t.clock.at(q.commitErrSince)
	}

	if blocking := q.find(cp.Next); blocking != nil {
		s.Blocking = t.locate(blocking)
	}
}

func (t *tracker) channelStatus(c *channel, now int64) ChannelStatus {
	s := ChannelStatus{Name: c.spec.Name, Lanes: []LaneStatus{}}
	s.Breaker, s.Opened = c.breaker.status()

	for _, in := range c.inboxes {
		s.Waiting += in.size()
	}

	for _, w := range t.lanes {
		if w.lane.ch == c {
			lane := w.status(now)
			s.Counts.add(lane.Counts)
			s.Lanes = append(s.Lanes, lane)
			s.meters = append(s.meters, w.lane.meters...)
		}
	}

	if m, ok := c.spec.Sink.(pipeline.Meter); ok {
		s.meters = append(s.meters, meter{c.stageName(c.endStage()), m})
	}

	slices.SortFunc(s.Lanes, func(a, b LaneStatus) int { return cmp.Compare(a.Lane, b.Lane) })

	return s
}

// status is what others may know of a lane.
func (w *watched) status(now int64) LaneStatus {
	l := w.lane
	l.mu.Lock()
	defer l.mu.Unlock()

	s := LaneStatus{Lane: l.num, Batch: len(l.waiting), Parked: l.parking.retries(), Counts: l.shown}

	if seq, state := l.word.look(); state != laneOurs {
		s.call = laneCall{lane: l, seq: seq}
		s.Stage = l.ch.stageName(l.at())
		s.Running = time.Duration(max(now-w.runsSince(seq, now), 0))
	}

	return s
}

// at is the stage that the present call is in. The caller holds mu.
func (l *lane) at() int32 {
	if l.sinking > 0 {
		return l.ch.endStage()
	}

	return int32(l.chain.At())
}
