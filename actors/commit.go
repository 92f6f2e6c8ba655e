package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
)

// commitTimeout bounds one call of the broker. A guess: long enough for a broker that is busy, short enough to be tried
// again while a queue is closing.
const commitTimeout = 10 * time.Second

// touch notes that a queue's checkpoint has changed and sees to it that it is committed in time.
func (t *tracker) touch(q *tracked) {
	q.dirty = true

	if t.committing {
		return
	}

	t.committing = true

	if t.commitTimer == nil {
		t.commitTimer = t.sendAfter(t.opts.CommitEvery, commitTick{})
	} else {
		t.commitTimer.Reset(t.opts.CommitEvery)
	}
}

// commitAll begins a commit for every queue whose checkpoint has changed.
func (t *tracker) commitAll() {
	for _, q := range t.queues {
		if q.dirty && !q.busy && q.closing == nil {
			t.commit(q)
		}
	}
}

// commit stores the checkpoint of a queue; the result comes back as a message. Nothing is sent when the broker has it, but for
// the last commit of a queue that this job has committed: a broker that has crashed since may have lost what it confirmed.
func (t *tracker) commit(q *tracked) {
	cp := q.window.Checkpoint()
	q.dirty = false
	again := q.closing != nil && q.confirmed

	if !again && q.has(cp) {
		return
	}

	q.busy = true
	ctx, member, lease, self, root := t.ctx, t.member, q.slot.lease, t.self, t.root

	go func() {
		ctx, cancel := context.WithTimeout(ctx, commitTimeout)
		defer cancel()

		root.Send(self, &commitResult{q: q, cp: cp, err: member.Commit(ctx, lease, cp)})
	}()
}

// has reports whether a checkpoint is what the broker has confirmed.
func (q *tracked) has(cp consumer.Checkpoint) bool {
	return cp.Next == q.committed.Next && slices.Equal(cp.Done, q.committed.Done)
}

func (t *tracker) committed(m *commitResult) {
	q := m.q
	if q.commitErr == nil {
		q.commitErrSince = t.clock.now()
	}

	q.busy, q.commitErr = false, m.err

	switch {
	case m.err == nil:
		q.confirmed = true
		t.counts.Commits++

		if !q.has(m.cp) { // once more what was confirmed before is no news
			q.committed = m.cp
			t.publish(&Committed{
				In: t.in(), Queue: q.slot.lease.Queue, Epoch: q.slot.lease.Epoch, Next: m.cp.Next, Above: doneLen(m.cp),
			})
		}

		// What has been finished since the commit began may have missed its tick, which passes over busy queues.
		if q.dirty && q.closing == nil {
			t.touch(q)
		}
	case errors.Is(m.err, consumer.ErrNotOwner):
		t.lose(q, m.err)
	default:
		t.counts.CommitsFailed++
		t.log.Warn("a commit failed; it is tried again", t.queueField(q.slot), zap.Error(m.err))
		t.publish(&CommitFailed{In: t.in(), Queue: q.slot.lease.Queue, Err: m.err})

		if q.dirty = true; q.closing == nil {
			t.touch(q)
		}
	}

	t.closeIfIdle(q)
}

// lose notes that a queue belongs to someone else, or that somebody has set its offset, as err says. What still runs for it is
// dropped when it ends.
func (t *tracker) lose(q *tracked, err error) {
	if q.slot.is(slotGone) {
		return
	}

	switch {
	case q.closing == nil:
		t.log.Warn("lost a queue", t.queueField(q.slot), zap.Error(err))
		q.closing = &closing{by: t.clock.now()}
	case errors.Is(err, consumer.ErrReset):
		t.log.Info("the group's offset was set while a queue was given up; the next owner begins there", t.queueField(q.slot))

		err = nil // as if the offset had been set just afterwards
	case q.has(q.window.Checkpoint()):
		t.log.Info("a queue went to its next owner before a last commit that would have said nothing new", t.queueField(q.slot))

		err = nil // as if there had been none
	default:
		t.log.Warn("lost a queue", t.queueField(q.slot), zap.Error(err))
	}

	t.root.Send(t.engine, &slotLost{slot: q.slot})
	t.finishClosing(q, err)
}

// closing is the end of a queue's ownership.
type closing struct {
	// by is when waiting for running work ends, by the clock.
	by int64
	// timer rings at by, and at the end of a pause after a refused last commit.
	timer *time.Timer
	// final: the last commit has been begun; tries is how often; pausing: it is to be tried again when the timer rings.
	final, pausing bool
	tries          int
}

const (
	// finalTries is how often the last commit of a queue is tried at least; it is also tried until the budget is spent. Then
	// the queue is given up without it, which costs repeats but loses nothing.
	finalTries = 3
	finalPause = 500 * time.Millisecond
)

// close begins the end of some queues.
func (t *tracker) close(m *closeSlots) {
	gone := func(e *entry) bool { return !e.t.slot().is(slotOwned) }

	for _, s := range m.slots {
		if s.is(slotGone) {
			continue
		}

		q := s.tracked
		if q.closing != nil {
			q.closing.by = min(q.closing.by, m.by)
			q.closing.timer.Reset(time.Duration(max(m.by-t.clock.now(), 0)))

			continue
		}

		t.allow(m.by)
		s.become(slotClosing)
		q.closing = &closing{by: m.by}
		q.closing.timer = t.sendAfter(time.Duration(max(m.by-t.clock.now(), 0)), &closeDue{q: q})
		t.flush(1)
	}

	if !m.drain {
		// What has not been begun is left to the next owner.
		waiting := newReport()

		for _, in := range t.channels[t.plan.Entry].inboxes {
			for _, e := range in.remove(gone) {
				if e.stage == 0 && e.tries == 0 {
					waiting.giveUp(e.t)
				} else {
					t.spread.deliver(t.channels[t.plan.Entry], []entry{e})
				}
			}
		}

		t.apply(waiting)
		waiting.release()
	}

	for _, w := range t.lanes {
		t.root.Send(w.lane.pid, &flush{by: m.by})
	}

	for _, s := range m.slots {
		t.closeIfIdle(s.tracked)
	}
}

// allow lets the lanes know until when a closing queue waits for them.
func (t *tracker) allow(by int64) {
	for _, c := range t.channels {
		c.until.Store(max(c.until.Load(), by))
	}
}

// flush makes the lanes hand on half-full batches while a queue is closing.
func (t *tracker) flush(n int32) {
	for _, c := range t.channels {
		c.flushing.Add(n)
	}
}

// closeIfIdle goes on with the end of a queue when nothing of it runs any more.
func (t *tracker) closeIfIdle(q *tracked) {
	c := q.closing
	if c == nil || q.slot.is(slotGone) || q.busy || c.pausing {
		return
	}

	now := t.clock.now()
	running, _ := q.window.InFlight()

	switch {
	case running > q.unfinished && now < c.by:
		return
	case c.final && !q.dirty:
		t.finishClosing(q, nil)
	case q.commitErr != nil && c.tries >= finalTries && now >= c.by:
		t.finishClosing(q, q.commitErr)
	case q.commitErr != nil && c.tries > 0:
		q.commitErr, c.pausing = nil, true
		c.timer.Reset(finalPause)
	default:
		c.final = true
		c.tries++

		t.commit(q)

		if !q.busy {
			t.finishClosing(q, nil)
		}
	}
}

// closeOverdue is called when a closing queue's timer rings.
func (t *tracker) closeOverdue(q *tracked) {
	if q.closing != nil {
		q.closing.pausing = false
		t.closeIfIdle(q)
	}
}

// finishClosing forgets a queue and tells the engine.
func (t *tracker) finishClosing(q *tracked, err error) {
	if q.closing.timer != nil {
		q.closing.timer.Stop()
		t.flush(-1)
	}

	left, count := t.unfinished(q)
	q.slot.become(slotGone)
	q.running = count - q.unfinished - t.returns.forget(q)
	t.queues = slices.DeleteFunc(t.queues, func(other *tracked) bool { return other == q })
	t.root.Send(t.engine, &slotClosed{
		slot: q.slot, committed: q.committed, err: err, left: left, leftCount: count, running: q.running,
	})

	if q.running > 0 {
		t.restless.Add(1)
		t.giveUpWaiting()
		t.armTick()

		for _, w := range t.lanes {
			t.root.Send(w.lane.pid, &flush{by: t.clock.now()})
		}
	}
}

// giveUpWaiting takes out of the inboxes what belongs to nobody any more.
func (t *tracker) giveUpWaiting() {
	stale := newReport()

	for _, c := range t.channels {
		for _, in := range c.inboxes {
			for _, e := range in.remove(func(e *entry) bool { return e.t.stale() }) {
				stale.giveUp(e.t)
			}
		}
	}

	t.apply(stale)
	stale.release()
}

// rest counts results that came after their queue was given up, and tells the engine when nothing of it runs any more.
func (t *tracker) rest(s *slot, n int) {
	q := s.tracked
	if q.running == 0 {
		return
	}

	if q.running -= n; q.running == 0 {
		t.restless.Add(-1)
		t.root.Send(t.engine, &slotQuiet{slot: s})
	}
}

func doneLen(c consumer.Checkpoint) int64 {
	var n int64
	for _, r := range c.Done {
		n += r.Len()
	}

	return n
}
