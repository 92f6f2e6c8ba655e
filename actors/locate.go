package actors

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// find returns the tally of an offset in flight; nil when there is none.
func (q *tracked) find(o pipeline.Offset) *tally {
	if !q.window.IsInFlight(o) {
		return nil
	}

	for _, b := range q.blocks {
		i, ok := slices.BinarySearchFunc(b.records[:b.n], o, func(r record, o pipeline.Offset) int {
			return cmp.Compare(r.offset, o)
		})
		if ok {
			return &b.tallies[i]
		}
	}

	return nil
}

// locate says where the message of a tally is and what happens to it next.
func (t *tracker) locate(target *tally) *Blocking {
	_, rec := offsetOf(target)
	b := &Blocking{
		Offset: rec.offset, MessageID: rec.id, Key: rec.key, Attempt: rec.delivery, Lane: -1,
		Attempts: t.plan.Job.Retry.Attempts,
	}

	if f := target.failure.Load(); f != nil && f.err != nil {
		b.LastError = f.err.Error()
	}

	if r := t.returns.all[target]; r != nil {
		t.locateReturn(b, r)

		return b
	}

	for _, w := range t.lanes {
		if t.locateInLane(b, w, target) {
			return b
		}
	}

	if t.locateWaiting(b, target) {
		return b
	}

	b.Doing, b.Next = "is on its way between two actors", "its lane hands it on at the end of its turn"

	if c := target.slot().tracked.closing; c != nil {
		b.Doing, b.Next = "is left to the next owner", "its queue is given up after the last commit"

		if c.by > t.clock.now() {
			b.Next, b.NextAt = "its queue is given up when what runs of it has ended", t.clock.at(c.by)
		}
	}

	return b
}

// locateWaiting looks through the inboxes.
func (t *tracker) locateWaiting(b *Blocking, target *tally) bool {
	for _, c := range t.channels {
		for i, in := range c.inboxes {
			in.each(func(e *entry) bool {
				if !e.t.standsFor(target) {
					return true
				}

				b.Doing, b.Channel, b.Stage = "waits for a lane", c.spec.Name, c.stageName(e.stage)
				b.Next = "the next free lane of " + c.spec.Name + " takes it up"

				if c.spec.Order != pipeline.OrderNone {
					b.Lane, b.Next = i, "its lane takes it up, in its turn"
				}

				c.breaker.keeps(b, 0)

				return false
			})

			if b.Doing != "" {
				return true
			}
		}
	}

	return false
}

func (t *tracker) locateReturn(b *Blocking, r *returning) {
	b.Doing = "goes back to the broker"
	if r.outcome.Verdict == pipeline.DeadLetter {
		b.Doing = "goes to the dead letters"
	}

	b.Channel, b.Stage, b.Attempt = r.failure.err.Channel, r.failure.err.Stage, r.failure.attempts
	b.LastError, b.Next = r.failure.err.Error(), "the broker's answer"

	if r.err != nil {
		b.LastError = "refused " + strconv.Itoa(r.tries) + " times: " + r.err.Error()
	}

	if r.next != 0 {
		b.Next, b.NextAt = "it is offered to the broker again", t.clock.at(r.next)
	}
}

func (t *tracker) locateInLane(b *Blocking, w *watched, target *tally) bool {
	l := w.lane
	l.mu.Lock()
	defer l.mu.Unlock()

	place := func(doing string, stage int32) {
		b.Doing, b.Channel, b.Lane, b.Stage = doing, l.ch.spec.Name, l.num, l.ch.stageName(stage)
	}

	next := func(what string, at int64) {
		b.Next, b.NextAt = what, t.clock.at(at)

		if at <= t.clock.now() {
			b.Next, b.NextAt = what+", after what its lane runs now", time.Time{}
		}
	}

	if t.locateRunning(b, w, target, place) {
		return true
	}

	if p, first := l.parking.find(target); p != nil {
		b.Attempt += int(p.tries)

		if first {
			place("is retried later", p.stage)
			next("it is tried again in place", p.due)

			if p.err != nil {
				b.LastError = p.err.Error()
			}
		} else {
			place("waits behind its key", p.stage)
			b.Next = "it runs after the earlier message of its key, which is retried"
		}

		l.ch.breaker.keeps(b, p.due)

		return true
	}

	for i := range l.waiting {
		if l.waiting[i].t.standsFor(target) {
			place("waits in a batch", l.ch.endStage())
			next("the batch is handed on when it is full, or by then", l.waitingSince+int64(l.ch.spec.Batch.Every))

			if l.ch.breaker.openAt(l.ch.endStage()) {
				l.ch.breaker.keeps(b, 0)
			}

			return true
		}
	}

	return false
}

// find returns where a message is parked, and whether it is the first that has to wait there; nil when it is not.
func (p *parking) find(target *tally) (found *parked, first bool) {
	for i := range p.parked {
		if p.parked[i].t.standsFor(target) {
			return &p.parked[i], true
		}
	}

	for _, h := range p.holds {
		for i := range h.line {
			if h.line[i].t.standsFor(target) {
				return &h.line[i], i == 0
			}
		}
	}

	return nil, false
}

// locateRunning looks at what a lane has taken up. The caller holds the lane's mu.
func (t *tracker) locateRunning(b *Blocking, w *watched, target *tally, place func(string, int32)) bool {
	l := w.lane
	seq, state := l.word.look()
	since := w.runsSince(seq, t.clock.now())

	deadline := func() {
		b.call = laneCall{lane: l, seq: seq}
		b.Since = t.clock.at(since)
		b.Next, b.NextAt = "the deadline gives it up", t.clock.at(since+int64(l.ch.spec.Timeout))

		if state == laneExpired {
			b.Expired = true
			b.Next, b.NextAt = "its lane is replaced", t.clock.at(w.expired+int64(t.look()))
		}
	}

	if l.sinking > 0 {
		for i := range min(l.sinking, len(l.waiting)) {
			if l.waiting[i].t.standsFor(target) {
				place("runs", l.ch.endStage())
				deadline()

				return true
			}
		}
	}

	for i := range l.work {
		if !l.work[i].t.standsFor(target) {
			continue
		}

		switch at := int(int64(seq) - int64(l.base)); {
		case i == at && l.sinking == 0 && state != laneOurs:
			place("runs", int32(l.chain.At()))
			deadline()
		case i < at:
			place("waits in a batch", l.ch.endStage())
			b.Next = "the batch is handed on at the end of the lane's turn"
		default:
			place("waits for a lane", l.work[i].stage)
			b.Next = "the lane takes it up after what runs now"
		}

		return true
	}

	return false
}

// standsFor says whether t is the tally of target or a joint one of it.
func (t *tally) standsFor(target *tally) bool {
	if t == target {
		return true
	}

	return slices.ContainsFunc(t.joint, func(p *tally) bool { return p.standsFor(target) })
}

// maxUnfinished is how many unfinished messages a report lists.
const maxUnfinished = 100

// unfinished lists what a closing queue leaves behind.
func (t *tracker) unfinished(q *tracked) ([]Unfinished, int) {
	count, _ := q.window.InFlight()

	var list []Unfinished

	for _, b := range q.blocks {
		for i := range b.n {
			if len(list) == maxUnfinished {
				return list, count
			}

			rec := &b.records[i]
			if !q.window.IsInFlight(rec.offset) {
				continue
			}

			at := t.locate(&b.tallies[i])
			holder := at.Doing

			if at.Channel != "" {
				holder += " at " + at.Channel + "/" + at.Stage
			}

			list = append(list, Unfinished{
				Queue: q.slot.lease.Queue, Offset: rec.offset, MessageID: rec.id, Holder: holder,
			})
		}
	}

	return list, count
}
