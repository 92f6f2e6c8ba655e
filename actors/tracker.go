package actors

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// tracker is the offset tracker: it owns the window of every queue of the job, decides what becomes of failed messages,
// watches the deadlines of the lanes, and commits. It never blocks: calls of the broker run on goroutines that send their
// results back to it.
type tracker struct {
	*job

	self   *actor.PID
	queues []*tracked
	lanes  []*watched
	counts TrackerCounts

	returns returnDesk
	// Timers that send the tracker a message; nil or stopped while there is nothing to wait for.
	commitTimer, tickTimer *time.Timer
	committing, ticking    bool
	spread                 spread
	// spent are blocks whose last tally is done; they go back to the pool when the message at hand is worked off.
	spent []*block
}

// tracked is one owned queue, as the tracker sees it.
type tracked struct {
	slot   *slot
	window *consumer.Window
	refund consumer.Refund
	// blocks are the admitted blocks that still have open tallies, oldest first.
	blocks []*block
	// committed is what the broker has confirmed.
	committed consumer.Checkpoint
	// confirmed: a commit of this ownership has been.
	confirmed bool
	// dirty: the window has moved since the last commit was begun; busy: a commit is under way; commitErr: the last one's
	// error, the first of an unbroken row of them at commitErrSince, by the clock.
	dirty, busy    bool
	commitErr      error
	commitErrSince int64
	// unfinished counts messages that were given up without a result, because the queue is closing.
	unfinished int
	closing    *closing
	// running counts messages whose result has not come although the queue has been given up.
	running int
	moved   int64
}

// TrackerCounts count what the tracker has seen since the start of the job.
type TrackerCounts struct {
	// Admitted counts messages taken into a window; Completed those of which something reached a sink, Filtered the other
	// finished ones. Repeated counts admitted messages that the broker had delivered before.
	Admitted  int64 `json:"admitted"`
	Completed int64 `json:"completed"`
	Filtered  int64 `json:"filtered"`
	Repeated  int64 `json:"repeated"`
	// SentBack and DeadLettered count messages that the broker took back; Refused the tries that it refused; Dropped
	// the failed messages of a broadcasting job.
	SentBack     int64 `json:"sentBack"`
	DeadLettered int64 `json:"deadLettered"`
	Refused      int64 `json:"refused"`
	Dropped      int64 `json:"dropped"`
	// Late counts results that came after their queue was given up.
	Late int64 `json:"late"`
	// Commits and CommitsFailed count checkpoints.
	Commits       int64 `json:"commits"`
	CommitsFailed int64 `json:"commitsFailed"`
	// Broken counts violations of the tracker's own books; anything but 0 is a bug of millrace.
	Broken int64 `json:"broken"`
}

// The tracker's messages to itself.
type (
	commitTick   struct{ internal }
	deadlineTick struct{ internal }
	closeDue     struct {
		internal

		q *tracked
	}
	commitResult struct {
		internal

		q   *tracked
		cp  consumer.Checkpoint
		err error
	}
)

// Receive is the tracker's actor behaviour.
func (t *tracker) Receive(c actor.Context) {
	defer t.contain("the tracker")

	t.receive(c)

	for _, b := range t.spent {
		b.release()
	}

	clear(t.spent)
	t.spent = t.spent[:0]
}

func (t *tracker) receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		t.self = c.Self()
		t.returns.tracker = t
	case *report:
		t.apply(m)
		m.release()
	case *admit:
		t.admit(m.block)
	case *passed:
		t.passed(m)
	case *own:
		t.own(m)
	case *breakerMoved:
		t.breakerMoved(m.event)
	case *laneReplaced:
		t.lanes = append(t.lanes, &watched{lane: m.lane})
	case deadlineTick:
		t.checkDeadlines()
	case commitTick:
		t.committing = false
		t.commitAll()
	case *commitResult:
		t.committed(m)
	case *returnResult:
		t.returns.result(m)
	case *returnAgain:
		t.returns.again(m.r)
	case *closeSlots:
		t.close(m)
	case *closeDue:
		t.closeOverdue(m.q)
	case *snapshotRequest:
		t.snapshot(m)
	case *actor.Stopping:
		t.stopTimers()
	}
}

func (t *tracker) own(m *own) {
	q := &tracked{
		slot:      m.slot,
		window:    consumer.NewWindow(t.opts.Limits, m.from),
		refund:    consumer.NewRefund(m.from.Next),
		committed: m.from,
		moved:     t.clock.now(),
	}
	m.slot.tracked = q
	t.queues = append(t.queues, q)
}

// admit records a block as in flight, before any lane sees it.
func (t *tracker) admit(b *block) {
	q := b.slot.tracked
	t.counts.Admitted += int64(b.n)

	for i := range b.n {
		if b.records[i].delivery > 1 {
			t.counts.Repeated++
		}
	}

	b.runs(0, b.n, func(r consumer.Run, bytes int64) {
		if err := q.window.Admit(r, bytes); err != nil {
			t.broken("admit", q, err)
		}
	})

	q.blocks = append(q.blocks, b)
	t.armTick()
}

// passed records that nothing below next will arrive any more.
func (t *tracker) passed(m *passed) {
	q := m.slot.tracked
	if !m.slot.is(slotOwned) {
		return
	}

	q.window.Advance(m.next)
	t.touch(q)
	t.giveBack(q)
}

// apply takes over what a lane reports as finished.
func (t *tracker) apply(r *report) {
	for i := range r.runs {
		run := &r.runs[i]
		n := int64(run.to - run.from)

		if run.block.slot.is(slotGone) {
			t.counts.Late += n
			t.rest(run.block.slot, int(n))

			continue
		}

		if run.filtered {
			t.counts.Filtered += n
		} else {
			t.counts.Completed += n
		}

		t.done(run.block, int(run.from), int(run.to))
	}

	for _, ended := range r.ended {
		t.ended(ended)
	}

	t.settleQueues(r)
}

// settleQueues gives credit back and goes on with closing, once for each queue that a report touched.
func (t *tracker) settleQueues(r *report) {
	var last *tracked

	visit := func(s *slot) {
		if s == nil || s.tracked == last {
			return
		}

		last = s.tracked
		t.giveBack(last)
		t.closeIfIdle(last)
	}

	for i := range r.runs {
		visit(r.runs[i].block.slot)
	}

	for _, ended := range r.ended {
		visit(ended.block.slot)
	}
}

// done takes a part of a block out of its window.
func (t *tracker) done(b *block, from, to int) {
	q := b.slot.tracked
	before := q.window.Min()

	b.runs(from, to, func(r consumer.Run, bytes int64) {
		if err := q.window.Done(r, bytes); err != nil {
			t.broken("done", q, err)

			return
		}

		q.refund.Add(int(r.Len()), bytes, q.window.Min())
	})

	if q.window.Min() != before {
		q.moved = t.clock.now()
	}

	b.open -= to - from
	if b.open == 0 {
		i := slices.Index(q.blocks, b)
		q.blocks = slices.Delete(q.blocks, i, i+1)
		t.spent = append(t.spent, b)
	}

	t.touch(q)
}

// ended decides what becomes of a source message that did not complete.
func (t *tracker) ended(ended *tally) {
	q := ended.block.slot.tracked

	switch f := ended.failure.Load(); {
	case ended.block.slot.is(slotGone):
		if !f.cancelled {
			t.counts.Late++
		}

		t.rest(ended.block.slot, 1)
	case f.cancelled:
		q.unfinished++
	case t.plan.Job.Source.Broadcast:
		t.drop(ended, f)
	default:
		t.returns.take(ended, f)
	}
}

// drop finishes a failed message of a broadcasting job.
func (t *tracker) drop(ended *tally, f *failure) {
	rec := ended.record()
	t.counts.Dropped++
	t.log.Warn("dropped a failed message", t.queueField(ended.block.slot), zap.Int64("offset", int64(rec.offset)),
		zap.String("id", rec.id), zap.Error(f.err))
	t.publish(&MessageDropped{
		In: t.in(), Queue: ended.block.slot.lease.Queue, Offset: rec.offset, MessageID: rec.id, Err: f.err,
	})
	t.done(ended.block, int(ended.index), int(ended.index)+1)
}

// giveBack returns credit to the pull-queue actor when enough has come together.
func (t *tracker) giveBack(q *tracked) {
	if q.slot.is(slotGone) {
		return
	}

	inFlight, _ := q.window.InFlight()
	q.refund.Add(0, 0, q.window.Min())

	if !q.refund.Due(t.opts.Limits, inFlight) {
		return
	}

	r := q.refund
	q.refund = consumer.NewRefund(r.Min)
	t.root.Send(q.slot.puller, &refund{messages: r.Messages, bytes: r.Bytes, low: r.Min})
}

// broken reports a violation of the tracker's own books. It cannot happen; when it does, nobody must overlook it.
func (t *tracker) broken(what string, q *tracked, err error) {
	t.counts.Broken++
	t.log.Error("the books of a queue are broken: "+what, t.queueField(q.slot), zap.Error(err))
}

// jitter spreads a pause by a fifth to both sides, so that many do not try again at once.
func jitter(d time.Duration) time.Duration {
	const fifth = 5

	return d - d/fifth + time.Duration(rand.Int64N(int64(d)*2/fifth+1))
}

// backoff returns the pause before try number tries+1: first, doubled for each further try, at most limit, with jitter.
func backoff(first, limit time.Duration, tries int) time.Duration {
	d := first
	for range tries - 1 {
		if d >= limit {
			break
		}

		d *= 2
	}

	return jitter(min(d, limit))
}

// sendAfter sends a message to the tracker after a while.
func (t *tracker) sendAfter(d time.Duration, message any) *time.Timer {
	self, root := t.self, t.root

	return time.AfterFunc(d, func() { root.Send(self, message) })
}

func (t *tracker) stopTimers() {
	for _, timer := range []*time.Timer{t.commitTimer, t.tickTimer} {
		if timer != nil {
			timer.Stop()
		}
	}

	t.returns.stop()
}

// offsetOf returns where a tally's source message stands.
func offsetOf(t *tally) (pipeline.Queue, *record) { return t.slot().lease.Queue, t.record() }
