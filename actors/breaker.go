package actors

import (
	"math"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// breaker pauses a channel when something that its messages need is down, so that they are not attempted until they are dead
// letters: see [pipeline.Breaker]. As long as nothing fails it is only looked at, once a turn. From the first failure on it
// watches the outcomes of the stages; when nearly all are failures it opens, and closes when a message has got through.
//
// Safe for concurrent use.
type breaker struct {
	ch   *channel
	spec pipeline.Breaker
	mode atomic.Uint32
	// stage is where it has opened, or the stage farthest on at which a message has failed that was tried since. Written
	// below mu.
	stage atomic.Int32

	mu sync.Mutex
	// outcomes are those of each stage and of the end of the channel, since the present watch began. Guarded by mu, as is all
	// that follows.
	outcomes []outcomes
	// watch numbers the watches: what a lane counted before one began does not belong to it.
	watch uint64
	// What follows is about the last opening: when it was and what was seen then, how many messages were tried, when the next one
	// is, who tries one now, and the last failure.
	since, next  int64
	failed, seen int
	tried        int
	prober       *lane
	last         *pipeline.StageError
	// waiting are the lanes to wake when something changes.
	waiting []*lane
	// turns numbers the tries, so that the lanes take turns.
	turns  int64
	opened int64
}

// standing is what a breaker knows of a lane that waits for it. Guarded by the breaker.
type standing struct {
	enlisted bool
	// ready: it had something to try when it asked last. turn is when it tried last.
	ready bool
	turn  int64
}

const (
	breakerCalm uint32 = iota
	breakerWatches
	breakerOpen
)

// severalMessages is how many must have failed, and none got through since, before their further attempts count as outcomes
// too: so an order that lets only the first message of each queue be attempted, or a trickle of messages, does not keep a
// dependency from being noticed, and a bad message by itself is never taken for one. A guess.
const severalMessages = 3

// outcomes are the last ones of a stage, as many as the breaker's window is wide.
type outcomes struct {
	failed uint64 // a bit each, the last outcome is the lowest
	seen   int
	// row is how many messages have failed at their first attempt since one got through.
	row int
}

// failures are what failed at once at a stage.
type failures struct {
	// first are the first attempts of their messages, later the others.
	first, later int
	// err is the last of them; nil when there is none.
	err *pipeline.StageError
}

func (o *outcomes) add(failed bool, window int) {
	o.failed <<= 1
	if failed {
		o.failed |= 1
	} else {
		o.row = 0
	}

	o.failed &= 1<<window - 1
	o.seen = min(o.seen+1, window)
}

func newBreaker(c *channel) *breaker {
	return &breaker{ch: c, spec: c.spec.Breaker, outcomes: make([]outcomes, c.endStage()+1)}
}

// open says that the channel is paused.
func (b *breaker) open() bool { return b.mode.Load() == breakerOpen }

// openAt says that the channel is paused because of a stage.
func (b *breaker) openAt(stage int32) bool { return b.open() && b.stage.Load() == stage }

// watches says that outcomes count.
func (b *breaker) watches() bool { return b.mode.Load() == breakerWatches }

// holds says whether a failure is held back: its message stays where it is and has not been attempted.
func (b *breaker) holds(err error) bool {
	if !b.open() || pipeline.IsRejected(err) {
		return false
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	return b.open() && b.ch.clock.now()-b.since < int64(b.spec.Patience)
}

// record notes what came of a stage in a lane: how many messages it took, and those that failed, without the rejected ones.
func (b *breaker) record(l *lane, stage int32, good int, bad failures) {
	if b.spec.Off {
		return
	}

	b.mu.Lock()
	roused := b.recordLocked(l, stage, good, bad)
	b.mu.Unlock()
	b.wake(roused)
}

func (b *breaker) recordLocked(l *lane, stage int32, good int, bad failures) (roused []*lane) {
	if b.open() {
		if bad.err != nil {
			b.last = bad.err
			defer b.putOff(bad.err)
		}

		if bad.err == nil || good > 0 || b.prober != l {
			return nil
		}

		b.stage.Store(max(stage, b.stage.Load()))
		b.pause()

		return b.dismiss()
	}

	if bad.first > 0 && !b.watches() {
		b.watch++
		clear(b.outcomes)
		b.mode.Store(breakerWatches)
	}

	if !b.watches() {
		return nil
	}

	b.hear(l)

	o := &b.outcomes[stage]
	count := bad.first

	if o.row >= severalMessages && good == 0 {
		count += bad.later
	}

	if count == 0 && o.seen == 0 {
		return nil // nothing is watched at a stage before its first failure
	}

	good, count = b.fit(good, count)

	for i := range good + count {
		o.add(i >= good, b.spec.Window)
	}

	o.row += bad.first

	if failed := bits.OnesCount64(o.failed); count > 0 && b.spec.Opens(failed, o.seen) {
		b.trip(stage, failed, o.seen, bad.err)
	} else {
		b.calm()
	}

	return nil
}

// fit scales the outcomes of a batch down to the window, so that their order is of no weight.
func (b *breaker) fit(good, bad int) (int, int) {
	if n := good + bad; n > b.spec.Window {
		good = good * b.spec.Window / n
		bad = b.spec.Window - good
	}

	return good, bad
}

// hear takes over what the stages of a lane have done well since it was heard last. The caller holds mu.
func (b *breaker) hear(l *lane) {
	if _, state := l.word.look(); state == laneFenced {
		return // its stages may still run
	}

	for i := range l.told {
		good := l.good(int32(i))

		if l.toldIn == b.watch && b.outcomes[i].seen > 0 {
			for range min(good-l.told[i], int64(b.spec.Window)) {
				b.outcomes[i].add(false, b.spec.Window)
			}
		}

		l.told[i] = good
	}

	l.toldIn = b.watch
}

// calm ends the watch when no failure is in sight any more. The caller holds mu.
func (b *breaker) calm() {
	for i := range b.outcomes {
		if b.outcomes[i].failed != 0 {
			return
		}
	}

	b.mode.Store(breakerCalm)
}

// heed hears a lane at the end of its turn, while the breaker watches.
func (b *breaker) heed(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.watches() {
		b.hear(l)
		b.calm()
	}
}

// trip opens the breaker. The caller holds mu.
func (b *breaker) trip(stage int32, failed, seen int, err *pipeline.StageError) {
	b.since, b.failed, b.seen, b.tried, b.last = b.ch.clock.now(), failed, seen, 0, err
	b.prober, b.next = nil, 0
	b.opened++
	b.pause()
	b.putOff(err)
	b.stage.Store(stage)
	b.mode.Store(breakerOpen)

	b.tell(&BreakerOpened{
		In: b.ch.in(), Channel: b.ch.spec.Name, Stage: b.ch.stageName(stage), Failed: failed, Seen: seen,
		Retry: time.Duration(b.next - b.since), Err: err,
	})
}

// pause lets a while pass until the next message is tried. The caller holds mu.
func (b *breaker) pause() {
	b.next = max(b.next, b.ch.clock.now()+int64(backoff(b.spec.Pause, b.spec.MaxPause, b.tried+1)))
}

// putOff lets the next message be tried no earlier than a failure asks for, since with nearly everything failing it speaks of
// what is down; a message that asks for more than Patience speaks for itself. The caller holds mu.
func (b *breaker) putOff(err *pipeline.StageError) {
	if delay, marked := pipeline.RetryDelay(err); marked {
		b.next = max(b.next, b.ch.clock.now()+int64(min(delay, b.spec.Patience)))
	}
}

// dismiss ends the try of the prober and returns the lanes to wake. The caller holds mu.
func (b *breaker) dismiss() []*lane {
	roused := b.waiting
	b.prober, b.waiting = nil, nil

	for _, l := range roused {
		l.waits.enlisted = false
	}

	return roused
}

// tell lets the tracker publish an event. An opening is told after the first message is held, a closing before one is not.
func (b *breaker) tell(moved Event) { b.ch.root.Send(b.ch.tracker, &breakerMoved{event: moved}) }

// wake wakes the lanes that were dismissed.
func (b *breaker) wake(roused []*lane) {
	for _, l := range roused {
		b.ch.wake(l)
	}
}

// leave is what the breaker gives a lane leave to do.
type leave uint8

const (
	leaveAll leave = iota
	// leaveOne: it tries one message.
	leaveOne
	// leaveNone: it is woken when something changes.
	leaveNone
)

// ask asks what a lane may do; ready says that it has something that could be tried. next is when one may be, 0 while
// it is somebody's turn.
func (b *breaker) ask(l *lane, ready bool) (may leave, next int64) {
	b.mu.Lock()
	may, next, roused := b.askLocked(l, ready)
	b.mu.Unlock()
	b.wake(roused)

	return may, next
}

func (b *breaker) askLocked(l *lane, ready bool) (may leave, next int64, roused []*lane) {
	l.waits.ready = ready
	due := b.prober == nil && b.next <= b.ch.clock.now()

	switch {
	case !b.open():
		return leaveAll, 0, nil
	case b.prober == l && ready:
		return leaveOne, 0, nil // the last one has shown nothing
	case b.prober == l:
		b.prober = nil
		roused = b.waiter(math.MaxInt64)
	case due && !ready:
		roused = b.waiter(math.MaxInt64) // somebody else has something
	case due:
		if roused = b.waiter(l.waits.turn); roused == nil {
			b.prober = l
			b.tried++
			b.turns++
			l.waits.turn = b.turns

			return leaveOne, 0, nil
		}
	}

	if !l.waits.enlisted {
		b.waiting = append(b.waiting, l)
		l.waits.enlisted = true
	}

	if b.prober == nil && !due {
		next = b.next
	}

	return leaveNone, next, roused
}

// waiter returns a lane, in a list to wake, that has something to try and whose last turn was before another; nil when there
// is none. The caller holds mu.
func (b *breaker) waiter(before int64) []*lane {
	for _, l := range b.waiting {
		if l.waits.ready && l.waits.turn < before {
			return []*lane{l}
		}
	}

	return nil
}

// passed closes the breaker, since a message has got through that l has tried.
func (b *breaker) passed(l *lane) {
	b.mu.Lock()

	var roused []*lane

	if b.prober == l {
		b.tell(&BreakerClosed{
			In: b.ch.in(), Channel: b.ch.spec.Name, Stage: b.ch.stageName(b.stage.Load()),
			Open: time.Duration(b.ch.clock.now() - b.since), Tried: b.tried,
		})
		b.last = nil
		b.mode.Store(breakerCalm)
		roused = b.dismiss()
	}

	b.mu.Unlock()
	b.wake(roused)
}

// pausedBeyond says that nothing is tried until after a moment.
func (b *breaker) pausedBeyond(by int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.open() && b.prober == nil && b.next > by
}
