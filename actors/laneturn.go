package actors

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// turn runs n entries of grab through the chain and what follows it. It returns false when the lane was fenced.
func (l *lane) turn(n int) bool {
	start := l.ch.clock.now()
	l.begin(start)

	l.mu.Lock()
	l.work, l.pos, l.base = l.grab[:n], 0, l.word.seq+1
	l.mu.Unlock()

	for l.pos < n {
		if !l.runOne(&l.work[l.pos], start) {
			return false
		}

		l.pos++

		if l.pos < n && l.endsEarly(start) {
			l.leave(l.work[l.pos:])

			break
		}
	}

	l.adapt(l.pos, l.ch.clock.now()-start)
	l.counts.Taken += int64(l.pos)

	l.mu.Lock()
	l.work = nil
	l.mu.Unlock()

	clear(l.grab[:n]) // an idle lane keeps no messages alive

	return l.endTurn()
}

// endsEarly says whether what the turn has not begun is to wait: the turn is slow, or the breaker has opened.
func (l *lane) endsEarly(start int64) bool {
	if l.pos%clockEvery == 0 && (l.stopping() || l.ch.clock.now()-start > int64(turnLimit)) {
		return true
	}

	return len(l.missed) > 0 && l.ch.breaker.open()
}

// leave puts back what was taken up and not begun.
func (l *lane) leave(entries []entry) {
	l.mu.Lock()
	rest := l.parking.putBack(entries, l.ch.spec.Order)
	l.mu.Unlock()

	l.ch.wake(l.inbox.unread(rest))
}

// begin notes when the next call begins, for the deadlines.
func (l *lane) begin(now int64) {
	l.begun.Store(now)
	l.begunSeq.Store(l.word.seq + 1)
}

// adapt chooses how many entries the next turn takes, so that it lasts about turnTarget.
func (l *lane) adapt(n int, took int64) {
	l.want = min(int(int64(n)*int64(turnTarget)/max(took, 1)), l.want*2, blockSize)
	l.want = max(l.want, 1)
	l.least = min(int(int64(n)*int64(leastShare)/max(took, 1)), blockSize)
}

// runOne sends one entry through the chain and settles what came of it. It returns false when the lane was fenced.
func (l *lane) runOne(e *entry, start int64) bool {
	if e.since == 0 {
		e.since = start
	}

	if l.ch.restless.Load() > 0 && e.t.stale() {
		l.word.skip()
		l.report.giveUp(e.t)

		return true
	}

	if l.ch.inPlace && !l.mayRun(e) {
		l.word.skip()

		return true
	}

	if l.keepsCopy() {
		l.spare = *e.m
		l.spare.Props = maps.Clone(e.m.Props)
	}

	l.outs, l.missed = l.outs[:0], l.missed[:0]
	call := l.call.Load()
	l.current = e

	l.word.enter()
	err := l.chain.Run(call, e.m, int(e.stage))

	switch l.word.leave() {
	case laneFenced:
		return false
	case laneExpired:
		err = l.expired(err)
	}

	l.settle(e, err)

	return true
}

// keepsCopy says whether a message that hangs is tried again in place, and so must be copied before.
func (l *lane) keepsCopy() bool { return l.ch.inPlace || l.trying }

// mayRun keeps the order of an ordered channel: an entry whose key is held back lines up behind it.
func (l *lane) mayRun(e *entry) bool {
	if l.ch.spec.Order == pipeline.OrderNone {
		return true
	}

	l.parking.number(e)

	if len(l.parking.holds) == 0 {
		return true
	}

	l.mu.Lock()
	verdict := l.parking.follow(keyOf(e.m, l.ch.spec.Order), *e)
	l.mu.Unlock()

	if verdict == turnGiveUp {
		l.report.giveUp(e.t)
	}

	return verdict == turnRun
}

// expired renews the calls' context after a call past its deadline has come back, and says so in its error.
func (l *lane) expired(err error) error {
	l.renew()
	l.counts.Timeouts++

	if failure, ok := errors.AsType[*pipeline.StageError](err); ok && !pipeline.IsRejected(err) {
		return &pipeline.StageError{
			Channel: failure.Channel, Stage: failure.Stage, Stack: failure.Stack,
			Err: errors.Join(pipeline.ErrTimeout, failure.Err),
		}
	}

	return err
}

// out is the chain's hook for what comes out of it: it goes to each route that matches, or to the channel's end.
func (l *lane) out(m *pipeline.Message) error {
	if len(l.ch.targets) == 0 || l.ch.spec.Gather != nil && l.sinking == 0 {
		l.outs = append(l.outs, out{m: m, route: -1, came: l.chain.Came()})

		return nil
	}

	before := len(l.outs)

	err := pipeline.Guard(l.ch.spec.Name, "route", func() error { return l.route(m) })
	if err != nil { // a message that fails takes no route
		l.outs = l.outs[:before]
	}

	return err
}

// route puts a message out to each route that matches.
func (l *lane) route(m *pipeline.Message) error {
	first := true

	for i := range l.ch.spec.Routes {
		matches, err := l.ch.spec.Routes[i].Matches(m)
		if err != nil {
			return pipeline.AsStageError(l.ch.spec.Name, "route", err)
		}

		if !matches || l.astray(i) {
			continue
		}

		if !first {
			m = m.Clone()
		}

		first = false
		l.outs = append(l.outs, out{m: m, route: i, came: l.chain.Came()})
	}

	return nil
}

// failed is the chain's hook for a message that a stage failed on. It runs inside the call,
// perhaps in a lane that was fenced meanwhile, so it may only note things and look at what is the lane's own.
func (l *lane) failed(stage int, m *pipeline.Message, err *pipeline.StageError, since int) bool {
	e := l.current
	now := l.ch.clock.now()

	var tries int32
	if int(e.stage) == stage {
		tries = e.tries
	}

	if l.stopping() {
		return false
	}

	if _, state := l.word.look(); state == laneFenced {
		return false
	}

	l.misses[stage]++
	l.noteFailure(e, int32(stage), tries, err)

	held := l.ch.holds(e, err)

	delay, again := l.ch.again(e, err, e.t.record().delivery+int(tries), now)
	if !again && !held {
		return false
	}

	if !held {
		tries++
	}

	// What the failed call has emitted before it failed would run beside what the next call emits.
	l.outs = slices.DeleteFunc(l.outs, func(o out) bool { return o.came > since })
	l.missed = slices.DeleteFunc(l.missed, func(m missed) bool { return m.came > since })
	l.missed = append(l.missed, missed{
		m: m, stage: int32(stage), tries: tries, delay: delay, held: held, err: err, came: l.chain.Came(),
	})

	return true
}

// settle counts what came of an entry and puts its outputs where they go next.
func (l *lane) settle(e *entry, err error) {
	l.counts.Emitted += int64(len(l.outs))

	if err != nil {
		l.settleError(e, err)
	}

	k := len(l.outs) + len(l.missed)

	switch k {
	case 0:
		if err == nil {
			l.counts.Filtered++
		}

		l.report.finish(e.t, false)
	default:
		e.t.add(k - 1)
		l.place(&entry{t: e.t, since: e.since, seq: e.seq, tries: l.triesAtEnd(e)})
	}

	if len(l.missed) > 0 {
		l.parkMissed(e)
	}
}

func (l *lane) settleError(e *entry, err error) {
	if l.stopping() {
		e.t.fail(&failure{cancelled: true})

		return
	}

	failed := pipeline.AsStageError(l.ch.spec.Name, l.ch.stageName(e.stage), err)
	l.counts.Failed++

	if failed.Stack != nil {
		l.counts.Panics++
	}

	e.t.fail(&failure{err: failed, attempts: e.t.record().delivery + int(e.tries)})
}

// triesAtEnd is how often the end of the channel has failed on an entry: one that is tried again there keeps its count.
func (l *lane) triesAtEnd(e *entry) int32 {
	if e.stage == l.ch.endStage() {
		return e.tries
	}

	return 0
}

// place puts the outputs of one entry to the end of the channel or into the buffers of its routes. At the end they go on
// with what next says of the entry.
func (l *lane) place(next *entry) {
	for _, o := range l.outs {
		if o.route >= 0 {
			l.routed[o.route] = append(l.routed[o.route], entry{m: o.m, t: next.t})

			continue
		}

		if len(l.pending) == 0 {
			l.pendingSince = l.begun.Load()
		}

		e := l.grown()
		e.m, e.t, e.stage, e.tries, e.since, e.seq = o.m, next.t, l.ch.endStage(), next.tries, next.since, next.seq

		if l.ch.spec.Batch.Bytes > 0 {
			l.pendingBytes += int64(o.m.Size())
		}
	}
}

// grown returns a new last entry of pending, to be filled where it stays: to fill one elsewhere and append it costs 6 ns.
func (l *lane) grown() *entry {
	n := len(l.pending)
	if n < cap(l.pending) {
		l.pending = l.pending[:n+1]
	} else {
		l.pending = append(l.pending, entry{})
	}

	return &l.pending[n]
}

// parkMissed parks what is tried again in place.
func (l *lane) parkMissed(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()

	for _, m := range l.missed {
		l.counts.Failed++

		if m.err.Stack != nil {
			l.counts.Panics++
		}

		again := entry{m: m.m, t: e.t, stage: m.stage, tries: m.tries, since: e.since, seq: e.seq}
		key := keyOf(&l.spare, l.ch.spec.Order)

		if m.held {
			l.keep(again, key, m.err)

			continue
		}

		l.counts.Retried++
		l.park(again, key, m.delay, m.err)
	}
}

// park parks an entry; in an ordered channel its key is held back. The caller holds mu.
func (l *lane) park(e entry, key orderKey, delay time.Duration, err *pipeline.StageError) {
	now := l.ch.clock.now()
	due := now + int64(delay)
	l.ch.attempts.note(e.t, e.t.record().delivery+int(e.tries)-1, now, l.ch.clock, err)
	l.shelve(e, key, due, err)
}

// shelve puts an entry into the parking. The caller holds mu.
func (l *lane) shelve(e entry, key orderKey, due int64, err *pipeline.StageError) {
	if l.ch.spec.Order == pipeline.OrderNone {
		l.parking.add(e, due, err)

		return
	}

	l.parking.hold(key, e, due, err)
}
