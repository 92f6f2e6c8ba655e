package actors

import (
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// Deadlines are looked at this often in the course of the shortest time-out, within the bounds below; a message is given
// up at most one look late. The numbers are guesses.
const (
	looksPerTimeout = 8
	minLook         = 5 * time.Millisecond
	maxLook         = time.Second
)

// watched is a lane under the tracker's eyes.
type watched struct {
	lane *lane
	// seq is the call that was running at the last look, since is when it began, and expired when it was cancelled; by the
	// clock.
	seq            uint64
	since, expired int64
}

// runsSince says when a call of the lane began, as far as it is known by now: of one that is not the first of its turn the next
// look finds out.
func (w *watched) runsSince(seq uint64, now int64) int64 {
	switch seq {
	case w.seq:
		return w.since
	case w.lane.begunSeq.Load():
		return w.lane.begun.Load()
	default:
		return now
	}
}

// look returns the pause between two looks at the lanes.
func (j *job) look() time.Duration {
	shortest := maxLook * looksPerTimeout
	for _, c := range j.channels {
		shortest = min(shortest, c.spec.Timeout)
	}

	return max(shortest/looksPerTimeout, minLook)
}

// armTick sees to it that the deadlines are looked at as long as anything is in flight, and only then.
func (t *tracker) armTick() {
	if t.ticking {
		return
	}

	t.ticking = true

	if t.tickTimer == nil {
		t.tickTimer = t.sendAfter(t.look(), deadlineTick{})
	} else {
		t.tickTimer.Reset(t.look())
	}
}

func (t *tracker) checkDeadlines() {
	t.ticking = false
	now := t.clock.now()

	for i := 0; i < len(t.lanes); i++ {
		if t.checkLane(t.lanes[i], now) {
			t.lanes = append(t.lanes[:i], t.lanes[i+1:]...)
			i--
		}
	}

	busy := t.restless.Load() > 0 || slices.ContainsFunc(t.queues, func(q *tracked) bool {
		n, _ := q.window.InFlight()

		return n > 0
	})
	if busy {
		t.armTick()
	}
}

// checkLane cancels a call that is past its deadline and gives up a lane whose call does not heed that. It returns true
// for a lane that was given up.
func (t *tracker) checkLane(w *watched, now int64) bool {
	l := w.lane
	seq, state := l.word.look()

	if state != laneOurs && seq != w.seq {
		w.seq, w.since, w.expired = seq, now, 0

		if l.begunSeq.Load() == seq {
			w.since = l.begun.Load()
		}
	}

	switch state {
	case laneRunning:
		call := l.call.Load()
		if now-w.since >= int64(l.ch.spec.Timeout) && l.word.expire(seq) {
			w.expired = now
			call.cancel(pipeline.ErrTimeout)
		}
	case laneExpired:
		if now-w.expired >= int64(t.look()) && l.word.fence(seq) {
			t.takeOver(l)

			return true
		}
	}

	return false
}

// takeOver ends what a fenced lane was doing: the messages of the hung call fail, or are tried again in place by a new
// lane; everything else that the lane held goes on as if nothing had happened.
func (t *tracker) takeOver(l *lane) {
	failed := newReport()
	fresh := t.empty(l, failed)

	// Not below the lane's mutex: a queue that ends by this looks for its messages in all lanes.
	t.apply(failed)
	failed.release()
	t.apply(l.report)
	t.root.Send(t.engine, &laneHung{old: l, fresh: fresh})
}

// empty hands on what a fenced lane held, and returns the lane that takes its place. What fails is added to failed.
func (t *tracker) empty(l *lane, failed *report) *lane {
	l.mu.Lock()
	defer l.mu.Unlock()

	fresh := newLane(t.lanesCtx, l.ch, l.num)
	fresh.parking, l.parking = l.parking, parking{}
	fresh.counts = l.counts
	fresh.counts.Timeouts++

	stage := l.ch.endStage()
	lost, rest := l.pending[:l.sinking], l.pending[l.sinking:]

	if l.sinking == 0 {
		stage = int32(l.chain.At())
		lost = l.work[l.pos : l.pos+1]
	}

	hung := &pipeline.StageError{Channel: l.ch.spec.Name, Stage: l.ch.stageName(stage), Err: pipeline.ErrTimeout}
	t.announceHung(l, hung, lost[0].t)

	// To the front, the last to run first: what had been through the stages runs before what had not.
	if l.pos < len(l.work) {
		from := l.pos
		if l.sinking == 0 {
			from++
		}

		l.ch.wake(l.inbox.unread(fresh.parking.putBack(l.work[from:], l.ch.spec.Order)))
	}

	l.ch.wake(l.inbox.unread(fresh.parking.putBack(rest, l.ch.spec.Order)))

	for i := range lost {
		l.noteFailure(&lost[i], stage, lost[i].tries, hung)
	}

	for i := range lost {
		t.loseEntry(l, fresh, lost[i], hung, failed)
	}

	for i := range l.routed {
		t.spread.deliver(l.ch.targets[i], l.routed[i])
	}

	l.work, l.waiting = nil, nil

	return fresh
}

// loseEntry settles one message of a hung call.
func (t *tracker) loseEntry(l, fresh *lane, e entry, hung *pipeline.StageError, failed *report) {
	spoil(e.t)

	attempts := e.t.record().delivery + int(e.tries)
	retry := e
	retry.tries++

	copied := l.sinking == 0 && l.keepsCopy()
	if copied {
		// The hung call may still write to the message, so the retry gets the copy that was kept.
		m := l.spare
		retry.m = &m
	}

	fresh.counts.Failed++

	if l.ch.holds(&e, hung) && (copied || l.sinking > 0) {
		retry.tries--
		fresh.keep(retry, keyOf(retry.m, l.ch.spec.Order), hung)

		return
	}

	if delay, again := l.ch.again(&e, hung, attempts, t.clock.now()); again {
		fresh.counts.Retried++
		fresh.park(retry, keyOf(retry.m, l.ch.spec.Order), delay, hung)
	} else {
		failed.fail(e.t, hung, attempts)
	}
}

// spoil keeps the blocks of a message out of the pool, since a hung call may still look at them.
func spoil(t *tally) {
	if t.block != nil {
		t.block.spoiled = true

		return
	}

	for _, parent := range t.joint {
		spoil(parent)
	}
}

func (t *tracker) announceHung(l *lane, hung *pipeline.StageError, of *tally) {
	queue, rec := offsetOf(of)
	t.log.Error("a call does not return; its lane is replaced", zap.String("lane", l.name()),
		zap.String("stage", hung.Stage), zap.Stringer("queue", queue), zap.Int64("offset", int64(rec.offset)),
		zap.String("id", rec.id))

	hungNow := int(t.hung.Add(1))
	t.publish(&LaneHung{
		In: t.in(), Channel: hung.Channel, Stage: hung.Stage, Lane: l.num, Queue: queue, Offset: rec.offset,
		MessageID: rec.id, Hung: hungNow,
	})

	if hungNow > t.opts.HungLanes {
		t.root.Send(t.engine, &giveUp{err: &HungLanesError{Limit: t.opts.HungLanes, Last: hung}})
	}
}

// HungLanesError is why a job stops by itself when too many calls do not return.
type HungLanesError struct {
	// Limit is Options.HungLanes.
	Limit int
	// Last is the place of the last hung call.
	Last *pipeline.StageError
}

var _ error = (*HungLanesError)(nil)

// Error names the place and the way out.
func (e *HungLanesError) Error() string {
	return "actors: more than " + strconv.Itoa(e.Limit) + " calls do not return, the last one in " +
		e.Last.Channel + "/" + e.Last.Stage +
		": let it heed its context, raise the channel's time-out, or raise Options.HungLanes"
}

// Unwrap returns the place.
func (e *HungLanesError) Unwrap() error { return e.Last }
