package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// endTurn hands on what a turn has produced: batches to the sink or the gather stage, outputs to their routes, finished
// messages to the tracker. It returns false when the lane was fenced.
func (l *lane) endTurn() bool {
	if l.ch.breaker.watches() {
		l.ch.breaker.heed(l)
	}

	for len(l.pending) > 0 && l.batchReady() && !l.endGated() {
		if l.stopping() {
			l.abandon()

			break
		}

		if !l.handOn() {
			return false
		}

		if l.triesEnd() {
			break
		}
	}

	for i := range l.routed {
		l.spread.deliver(l.ch.targets[i], l.routed[i])
		clear(l.routed[i])
		l.routed[i] = l.routed[i][:0]
	}

	l.tell()

	return true
}

// abandon gives up what waits for the sink or the gather stage: the job has stopped, and its sinks are closed.
func (l *lane) abandon() {
	for i := range l.pending {
		l.report.giveUp(l.pending[i].t)
	}

	l.mu.Lock()
	clear(l.pending)
	l.pending = l.pending[:0]
	l.waiting = nil
	l.mu.Unlock()
}

// dropStale ends what waits for the sink or the gather stage and belongs to nobody any more: its stages are done, too late.
func (l *lane) dropStale() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.pending = slices.DeleteFunc(l.pending, func(e entry) bool {
		stale := e.t.stale()
		if stale {
			l.report.finish(e.t, false)
		}

		return stale
	})
	l.waiting = l.pending
}

// reportEvery is how long what is finished is kept back at most between two calls of a sink that takes few messages at once: a
// report costs as much as some messages do. Batches from reportBatch on are reported each. Both are guesses.
const (
	reportEvery = time.Millisecond
	reportBatch = 16
)

// tell sends the tracker what is finished and shows the counts.
func (l *lane) tell() {
	l.toldAt = l.begun.Load()

	if !l.report.empty() {
		r := l.report
		l.report = newReport()
		l.ch.root.Send(l.ch.tracker, r)
	}

	l.mu.Lock()
	l.shown, l.waiting, l.waitingSince = l.counts, l.pending, l.pendingSince
	l.mu.Unlock()
}

// batchReady says whether the pending batch is to be handed on now.
func (l *lane) batchReady() bool {
	b := &l.ch.spec.Batch

	return b.Every == 0 || l.triesEnd() || l.ch.flushing.Load() > 0 ||
		len(l.pending) >= b.Messages || b.Bytes > 0 && l.pendingBytes >= b.Bytes ||
		l.ch.clock.now()-l.pendingSince >= int64(b.Every)
}

// handOn gives one batch of pending to the sink or the gather stage and settles it. It returns false when the lane was
// fenced.
func (l *lane) handOn() bool {
	if l.ch.restless.Load() > 0 {
		l.dropStale()
	}

	n := l.batchLen()
	if n == 0 { // nothing but what was dropped
		l.remeasure()

		return true
	}

	l.batch = l.batch[:0]
	for i := range n {
		l.batch = append(l.batch, l.pending[i].m)
	}

	l.mu.Lock()
	l.sinking, l.waiting, l.waitingSince = n, l.pending, l.pendingSince
	l.mu.Unlock()

	now := l.ch.clock.now()
	if n >= reportBatch || now-l.toldAt >= int64(reportEvery) {
		l.tell() // or a call that hangs would keep back what is finished
	}

	l.outs = l.outs[:0]
	call := l.call.Load()
	l.begin(now)

	l.word.enter()
	err := pipeline.Guard(l.ch.spec.Name, l.ch.stageName(l.ch.endStage()), func() error {
		if l.gather != nil {
			return l.gather.TransformBatch(call, l.batch, l.out)
		}

		return l.ch.spec.Sink.Write(call, l.batch)
	})

	switch l.word.leave() {
	case laneFenced:
		return false
	case laneExpired:
		if err != nil {
			err = l.expired(pipeline.AsStageError(l.ch.spec.Name, l.ch.stageName(l.ch.endStage()), err))
		} else {
			_ = l.expired(nil)
		}
	}

	clear(l.batch)
	l.settleBatch(n, err)

	return true
}

// batchLen is how much of pending makes the next batch.
func (l *lane) batchLen() int {
	b := &l.ch.spec.Batch
	n := min(len(l.pending), b.Messages)

	if l.triesEnd() {
		return min(n, 1)
	}

	if b.Bytes == 0 {
		return n
	}

	var sum int64
	for i := range n {
		size := int64(l.pending[i].m.Size())
		if i > 0 && sum+size > b.Bytes {
			return i
		}

		sum += size
	}

	return n
}

// settleBatch counts what came of the first n pending entries and forgets them.
func (l *lane) settleBatch(n int, err error) {
	var partial *pipeline.BatchError
	if err != nil {
		partial, _ = errors.AsType[*pipeline.BatchError](err)
	}

	failed := func(i int) error {
		if partial != nil {
			return partial.Failed[i]
		}

		return err
	}

	if err != nil || l.trying || l.ch.breaker.watches() {
		l.noteBatch(n, failed)
	}

	gathered, heldBack := l.gatherBuffer(n), false

	for i := range n {
		e := &l.pending[i]

		switch failure := failed(i); {
		case failure != nil:
			l.settleFailedEnd(e, failure)
		case l.behind(e):
			heldBack = true
		case l.gather != nil:
			gathered = append(gathered, *e)
		default:
			l.counts.Written++
			l.report.finish(e.t, true)
		}
	}

	if l.gather != nil && heldBack {
		// The outputs hold what has to wait: without them, the rest of the batch is gathered again.
		l.outs = l.outs[:0]
	} else if len(gathered) > 0 {
		l.settleGathered(gathered)
		gathered = nil
	}

	l.forget(n, gathered)
}

// behind keeps the order of an ordered channel at its end: when a message of a key is to be written again, the later ones
// of the key are too, also those that the same batch has just written.
func (l *lane) behind(e *entry) bool {
	if len(l.parking.holds) == 0 {
		return false
	}

	l.mu.Lock()
	verdict := l.parking.follow(keyOf(e.m, l.ch.spec.Order), *e)
	l.mu.Unlock()

	if verdict == turnGiveUp {
		l.report.giveUp(e.t)
	}

	return verdict != turnRun
}

// forget drops the first n pending entries, but for those in kept, and the ones behind them whose key is held back.
func (l *lane) forget(n int, kept []entry) {
	if len(l.parking.holds) == 0 && len(kept) == 0 {
		kept = l.pending[n:]
	} else {
		for i := n; i < len(l.pending); i++ {
			if !l.behind(&l.pending[i]) {
				kept = append(kept, l.pending[i])
			}
		}
	}

	l.mu.Lock()
	l.sinking = 0
	rest := copy(l.pending, kept)
	clear(l.pending[rest:])
	l.pending = l.pending[:rest]
	l.waiting = l.pending
	l.mu.Unlock()

	l.remeasure()
}

// gatherBuffer returns room for what of a batch was gathered; it outlives the batch. Sinks need none.
func (l *lane) gatherBuffer(n int) []entry {
	if l.gather == nil {
		return nil
	}

	return make([]entry, 0, n)
}

// remeasure brings size and age of what is left pending up to date.
func (l *lane) remeasure() {
	l.pendingBytes = 0
	l.pendingSince = l.begun.Load()

	if l.ch.spec.Batch.Bytes == 0 {
		return
	}

	for i := range l.pending {
		l.pendingBytes += int64(l.pending[i].m.Size())
	}
}

// settleGathered routes the outputs of a gather stage; they stand for all that went into it.
func (l *lane) settleGathered(gathered []entry) {
	l.counts.Emitted += int64(len(l.outs))

	if len(l.outs) == 0 {
		for i := range gathered {
			l.report.finish(gathered[i].t, false)
		}

		return
	}

	parents := make([]*tally, len(gathered))
	for i := range gathered {
		parents[i] = gathered[i].t
	}

	joint := newJoint(parents)
	joint.add(len(l.outs) - 1)
	l.place(&entry{t: joint})
	l.outs = l.outs[:0]
}

// settleFailedEnd settles one message that the sink or the gather stage failed on.
func (l *lane) settleFailedEnd(e *entry, err error) {
	if l.stopping() {
		l.report.giveUp(e.t)

		return
	}

	failed := pipeline.AsStageError(l.ch.spec.Name, l.ch.stageName(e.stage), err)
	attempts := e.t.record().delivery + int(e.tries)
	l.counts.Failed++

	if failed.Stack != nil {
		l.counts.Panics++
	}

	if l.ch.holds(e, failed) {
		l.mu.Lock()
		l.keep(*e, keyOf(e.m, l.ch.spec.Order), failed)
		l.mu.Unlock()

		return
	}

	delay, again := l.ch.again(e, failed, attempts, l.ch.clock.now())
	if !again {
		l.report.fail(e.t, failed, attempts)

		return
	}

	l.counts.Retried++
	retry := *e
	retry.tries++

	l.mu.Lock()
	l.park(retry, keyOf(e.m, l.ch.spec.Order), delay, failed)
	l.mu.Unlock()
}
