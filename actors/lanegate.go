package actors

import (
	"slices"

	"github.com/millrace/millrace/pipeline"
)

// good is how often a stage has taken a message without failing on it.
func (l *lane) good(stage int32) int64 {
	if stage == l.ch.endStage() {
		return l.accepted
	}

	return l.chain.Calls(int(stage)) - l.misses[stage]
}

// count adds the failure of an entry that its stage had tried so often before.
func (f *failures) count(e *entry, tries int32) {
	if e.t.record().delivery+int(tries) == 1 {
		f.first++
	} else {
		f.later++
	}
}

// noteFailure tells the breaker of a failure, unless it is a rejection. Of the tracker too, for the lane that it has fenced.
func (l *lane) noteFailure(e *entry, stage, tries int32, err *pipeline.StageError) {
	if pipeline.IsRejected(err) {
		return
	}

	bad := failures{err: err}
	bad.count(e, tries)
	l.ch.breaker.record(l, stage, 0, bad)
}

// noteBatch tells the breaker what came of the first n pending entries, all together: what a batch shows is its share.
func (l *lane) noteBatch(n int, failed func(i int) error) {
	var (
		good int
		bad  failures
	)

	for i := range n {
		err := failed(i)

		switch {
		case err == nil:
			good++
		case !pipeline.IsRejected(err):
			bad.err = pipeline.AsStageError(l.ch.spec.Name, l.ch.stageName(l.ch.endStage()), err)
			bad.count(&l.pending[i], l.pending[i].tries)
		}
	}

	l.accepted += int64(good)
	l.ch.breaker.record(l, l.ch.endStage(), good, bad)
}

// gated is what a lane does while the breaker is open: it tries one message when it is time, and rests otherwise. It
// returns false when there is nothing more to do, or when the lane was fenced.
func (l *lane) gated() bool {
	l.yield()

	ready := l.ready()

	may, next := l.ch.breaker.ask(l, ready)

	switch may {
	case leaveAll:
		return true
	case leaveOne:
		return l.try()
	case leaveNone:
	}

	if !l.endTurn() {
		return false
	}

	if !ready && !l.inbox.rest(l) {
		return true // something has come meanwhile
	}

	l.armGated(ready, next)

	return false
}

// ready says whether the lane has something to try.
func (l *lane) ready() bool {
	if l.inbox.size() > 0 || len(l.pending) > 0 && l.ch.breaker.openAt(l.ch.endStage()) {
		return true
	}

	due, ok := l.parking.next()

	return ok && due <= l.ch.clock.now()
}

// armGated sets the timer of a lane that the breaker lets rest: to when a message may be tried, if it has one, and to the
// end of a batch that does not wait for that.
func (l *lane) armGated(ready bool, next int64) {
	at, ok := next, next != 0

	if !ready {
		if at, ok = l.parking.next(); ok {
			at = max(at, next)
		}
	}

	if len(l.pending) > 0 && !l.ch.breaker.openAt(l.ch.endStage()) {
		if full := l.pendingSince + int64(l.ch.spec.Batch.Every); !ok || full < at {
			at, ok = full, true
		}
	}

	l.alarm(at, ok)
}

// try sends one message through, for the breaker: what waits at the end first, if that is what has failed, then what nobody
// has begun, then what has failed before, in turns, so that one bad message does not stand for all. It returns false when
// the lane was fenced, about which the tracker tells the breaker.
func (l *lane) try() bool {
	stage := l.ch.breaker.stage.Load()
	before := l.good(stage)
	l.trying = true

	if stage == l.ch.endStage() && len(l.pending) > 0 {
		if !l.endTurn() {
			return false
		}
	} else if n := l.takeOne(); n > 0 && !l.turn(n) {
		return false
	}

	l.trying = false

	if l.good(stage) > before {
		l.ch.breaker.passed(l)
	}

	return true
}

// takeOne fills grab with one entry, if there is any.
func (l *lane) takeOne() int {
	n, other := l.inbox.take(l, l.grab[:1])
	l.ch.wake(other)

	if n > 0 {
		return n
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	return l.parking.longest(l.ch.clock.now(), l.grab[:1])
}

// triesEnd says whether the message that is tried is to get through the end of the channel, alone.
func (l *lane) triesEnd() bool { return l.trying && l.ch.breaker.openAt(l.ch.endStage()) }

// endGated says whether the end of the channel has to wait for the breaker.
func (l *lane) endGated() bool { return !l.trying && l.ch.breaker.openAt(l.ch.endStage()) }

// keep parks an entry that has failed while the breaker is open: it goes on with the channel, and has not been attempted.
func (l *lane) keep(e entry, key orderKey, err *pipeline.StageError) {
	e.since = 0
	l.shelve(e, key, l.ch.clock.now(), err)
}

// yield gives up what belongs to nobody any more, and what the breaker would keep beyond the end of its queue: nothing of the
// channel runs until then, so no order is broken, and the queue need not wait for it.
func (l *lane) yield() {
	if l.ch.flushing.Load() == 0 && l.ch.restless.Load() == 0 {
		return
	}

	order, beyond := l.ch.spec.Order, l.ch.breaker.pausedBeyond(l.ch.until.Load())
	over := func(e *entry) bool { return e.t.stale() || beyond && !e.t.wanted() }

	l.mu.Lock()

	// By way of the parking, which remembers what of a key was given up.
	for _, e := range l.inbox.remove(over) {
		if order != pipeline.OrderNone {
			l.parking.number(&e)
		}

		l.shelve(e, keyOf(e.m, order), 0, nil)
	}

	if l.ch.breaker.openAt(l.ch.endStage()) {
		l.pending = slices.DeleteFunc(l.pending, func(e entry) bool {
			if !over(&e) {
				return false
			}

			l.shelve(e, keyOf(e.m, order), 0, nil)

			return true
		})
		l.waiting = l.pending
	}

	dropped := l.parking.drop(func(e *entry, _ int64) bool { return over(e) })
	l.mu.Unlock()

	if len(dropped) > 0 {
		l.remeasure()
	}

	for i := range dropped {
		l.report.giveUp(dropped[i].t)
	}
}
