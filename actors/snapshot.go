package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/pipeline"
)

// Snapshot is the state of a job at one moment. It belongs to whoever asked for it.
type Snapshot struct {
	// Job is the job's name, At when the snapshot was taken.
	Job string
	At  time.Time
	// State is starting, running, draining, stopping or stopped.
	State string
	// Queues are the queues of the job's assignment, sorted by topic, broker and id.
	Queues []QueueStatus
	// Channels are in the order of the job.
	Channels []ChannelStatus
	// Counts are totals since the start of the job.
	Counts TrackerCounts
	// Hung is how many lanes are given up because a call does not return.
	Hung int
}

// QueueStatus is the state of one queue.
type QueueStatus struct {
	Queue pipeline.Queue
	Epoch uint64
	// Committed is the confirmed checkpoint's offset, Min the commit watermark, Next the offset to pull next, End the
	// broker's end of the queue as of the last pull. Committed <= Min <= Next <= End.
	Committed, Min, Next, End pipeline.Offset
	// InFlight and Bytes are admitted and not finished; Above is how many offsets above Min are finished.
	InFlight int
	Bytes    int64
	Above    int64
	// MovedAt is when Min moved last.
	MovedAt time.Time
	// Waits says what the next pull waits for, since WaitsSince: "messages", "credit", "a pause", "a retry", "its start",
	// "its end", "its assignment". Empty while messages flow.
	Waits      string
	WaitsSince time.Time
	// Paused says why, empty when not.
	Paused string
	// Err is the last error of a look-up, pull or commit; RetryAt is when it is tried again (zero for a commit).
	Err     string
	RetryAt time.Time
	// Blocking is the message at Min; nil when nothing is in flight.
	Blocking *Blocking
}

// Lag returns how many messages the queue holds that are not committed.
func (q *QueueStatus) Lag() int64 { return int64(q.End - q.Committed) }

// Blocking is the message that keeps a commit watermark where it is.
type Blocking struct {
	Offset    pipeline.Offset
	MessageID string
	Key       string
	// Attempt counts the deliveries by the broker and the retries in place, 1 for the first.
	Attempt int
	// Doing says what the message does: "runs", "waits for a lane", "waits in a batch", "is retried later",
	// "waits behind its key", "goes back to the broker", "goes to the dead letters".
	Doing string
	// Channel, Lane and Stage say where; Lane is -1 where no lane holds the message.
	Channel string
	Lane    int
	Stage   string
	// Since is when that began, as far as known.
	Since time.Time
	// LastError is the last failure or refusal; empty when there was none.
	LastError string
	// Next says what happens next, and NextAt when, if that is known.
	Next   string
	NextAt time.Time
}

// ChannelStatus is the state of one channel.
type ChannelStatus struct {
	Name string
	// Waiting is how many messages wait for a lane.
	Waiting int
	Lanes   []LaneStatus
	// Counts are the sum over the lanes.
	Counts LaneCounts
}

// LaneStatus is the state of one lane.
type LaneStatus struct {
	Lane int
	// Stage is the stage that runs now; empty when the lane is idle or between calls.
	Stage string
	// Running is how long the present call has run, as far as known.
	Running time.Duration
	// Batch is how many messages wait in the lane's batch, Parked how many for a retry in place.
	Batch, Parked int
	Counts        LaneCounts
}

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
		State: [...]string{"starting", "running", "draining", "stopping", "stopping", "stopped"}[e.state],
	}

	for _, q := range e.queues {
		st := QueueStatus{Queue: q.lease.Queue, Epoch: q.lease.Epoch, Paused: q.paused, Waits: "its start"}
		if q.closing {
			st.Waits = "its end"
		}

		if q.err != nil {
			st.Err, st.RetryAt = q.err.Error(), e.clock.at(q.retry)
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
	closing := s.Waits == "its end"

	q.slot.pull.update(func(p *pullStatus) {
		s.Next, s.End, s.Waits, s.Paused = max(p.next, s.Next), max(p.end, s.Next), p.waits, p.paused

		if p.waits != "" {
			s.WaitsSince = t.clock.at(p.since)
		}

		if p.err != nil {
			s.Err, s.RetryAt = p.err.Error(), t.clock.at(p.retry)
		}
	})

	if closing {
		s.Waits = "its end"
	}

	if q.commitErr != nil && s.Err == "" {
		s.Err = q.commitErr.Error()
	}

	if blocking := q.find(cp.Next); blocking != nil {
		s.Blocking = t.locate(blocking)
	}
}

func (t *tracker) channelStatus(c *channel, now int64) ChannelStatus {
	s := ChannelStatus{Name: c.spec.Name}

	for _, in := range c.inboxes {
		s.Waiting += in.size()
	}

	for _, w := range t.lanes {
		if w.lane.ch == c {
			lane := w.lane.status(now)
			s.Counts.add(lane.Counts)
			s.Lanes = append(s.Lanes, lane)
		}
	}

	slices.SortFunc(s.Lanes, func(a, b LaneStatus) int { return cmp.Compare(a.Lane, b.Lane) })

	return s
}

// status is what others may know of a lane.
func (l *lane) status(now int64) LaneStatus {
	l.mu.Lock()
	defer l.mu.Unlock()

	s := LaneStatus{Lane: l.num, Batch: len(l.waiting), Parked: l.parking.retries(), Counts: l.shown}

	if _, state := l.word.look(); state != laneOurs {
		s.Stage = l.ch.stageName(l.at())
		s.Running = time.Duration(max(now-l.begun.Load(), 0))
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
