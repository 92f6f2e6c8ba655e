package actors

import (
	"context"
	"errors"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/pipeline"
)

const (
	// turnTarget is how much work a lane aims to take up at once; a longer turn would keep messages from idle lanes.
	turnTarget = time.Millisecond
	// leastShare is how much work a lane takes alone, since to wake another lane for half of it costs more than it saves.
	leastShare = 50 * time.Microsecond
	// turnLimit ends a turn that turns out to be slow: what was not begun goes back to the inbox. Rule 1 of the speed rules.
	turnLimit = 5 * time.Millisecond
	// turnsPerWake is how many turns a lane makes before it looks at its mailbox. A guess; it only has to be a few.
	turnsPerWake = 16
	// clockEvery is how many messages pass between two looks at the clock. A guess: it costs under 3 ns a message.
	clockEvery = 16
	// lingerYields is how often a lane gives way before it sleeps after a full turn: some microseconds. With ten, lanes sleep
	// as often as with none.
	lingerYields = 100
)

// errStopping is the cause of a lane's cancelled context when the job gives up at the end of a drain.
var errStopping = errors.New("actors: the job is stopping")

// lane is a lane of a channel: all of its stages, called one after the other inside one actor. It is the only actor that
// runs user code, and the only one that may block. It is not a child of the engine, though the engine spawns, watches and
// stops it: a parent cannot stop before its children do, so one hung call would hold the whole tree of whoever embeds a job.
type lane struct {
	ch    *channel
	num   int
	inbox *inbox
	pid   *actor.PID
	chain *pipeline.Chain
	// gather is this lane's instance of the channel's gather stage; nil when there is none.
	gather pipeline.BatchTransform
	// meters are those of the stages and the gather; they stay as open has made them.
	meters []meter

	word laneWord
	// begun is when the present turn or sink call began, by the clock; begunSeq is the number of its first call.
	begun    atomic.Int64
	begunSeq atomic.Uint64
	// call is the context of the calls; it is renewed after a call that ran past its deadline.
	call   atomic.Pointer[callContext]
	parent context.Context // the lane's lifetime
	labels context.Context // the labels of the lane's goroutine; see label

	// What follows belongs to whoever's turn it is by the word; mu is held to change what snapshots look at.
	mu sync.Mutex
	// work are the entries of the present turn; work[pos] is at the chain.
	work []entry
	// base is the number of the call that work[0] gets; the one at the chain is work[number of the present call - base].
	base uint64
	pos  int
	want int
	// least is how many entries are not worth sharing with another lane: leastShare of work, going by the last turn.
	least int
	// spare is work[pos].m as it was before the chain; kept where a hung message is retried in place.
	spare pipeline.Message
	// sinking is how many entries of pending are at the sink or gather stage; 0 when the chain is at work.
	sinking int
	// pending are outputs that wait for the sink or the gather stage, oldest first.
	pending      []entry
	pendingBytes int64
	pendingSince int64
	parking      parking
	// shown, waiting and waitingSince are what snapshots see of counts, pending and pendingSince, as of the end of the last
	// turn or the begin of the present call of the sink or gather stage.
	shown        LaneCounts
	waiting      []entry
	waitingSince int64

	// What follows is touched only by the lane's own goroutine.
	grab [blockSize]entry
	// current is the entry at the chain.
	current *entry
	outs    []out
	missed  []missed
	routed  [][]entry
	batch   []*pipeline.Message
	spread  spread
	report  *report
	// toldAt is when the last call began after which the tracker was told, by the clock.
	toldAt int64
	counts LaneCounts
	timer  *time.Timer
	// idle: the lane is on its inbox's list of idle lanes. Guarded by the inbox.
	idle bool
	// waits is the lane's place among those that wait for the breaker.
	waits standing
	// trying: the present turn tries one message for the breaker. The tracker reads it when it has fenced the lane.
	trying bool
	// misses is how often each stage has failed, accepted what the end of the channel has taken. told is what the breaker was
	// last told of the stages, in its watch number toldIn; it belongs to the lane and is used below the breaker's mutex.
	misses   []int64
	accepted int64
	told     []int64
	toldIn   uint64
}

// callContext is a context with the function that ends it.
type callContext struct {
	context.Context

	cancel context.CancelCauseFunc
}

// out is an output of the chain: for a route of the channel, or for its end when route is -1.
type out struct {
	m     *pipeline.Message
	route int
	// came is its number, by Chain.Came.
	came int
}

// missed is a message that a stage failed on and that is tried again in place.
type missed struct {
	m     *pipeline.Message
	stage int32
	tries int32
	delay time.Duration
	// held: the breaker keeps it, without a delay.
	held bool
	err  *pipeline.StageError
	// came is its number, by Chain.Came.
	came int
}

// LaneCounts count what a lane has done. A lane that replaces another starts from its counts.
type LaneCounts struct {
	// Taken counts messages taken up, retries included; Emitted what came out of the last stage; Filtered the messages of
	// which nothing came out; Written what the sink accepted.
	Taken    int64 `json:"taken"`
	Emitted  int64 `json:"emitted"`
	Filtered int64 `json:"filtered"`
	Written  int64 `json:"written"`
	// Failed counts failures, the ones retried in place included; Retried the retries in place; Panics the panics among
	// the failures; Timeouts the calls that ran past their deadline.
	Failed   int64 `json:"failed"`
	Retried  int64 `json:"retried"`
	Panics   int64 `json:"panics"`
	Timeouts int64 `json:"timeouts"`
}

func (c *LaneCounts) add(o LaneCounts) {
	c.Taken += o.Taken
	c.Emitted += o.Emitted
	c.Filtered += o.Filtered
	c.Written += o.Written
	c.Failed += o.Failed
	c.Retried += o.Retried
	c.Panics += o.Panics
	c.Timeouts += o.Timeouts
}

func newLane(ctx context.Context, c *channel, num int) *lane {
	l := &lane{
		ch: c, num: num, inbox: c.inboxOf(num), parent: ctx, want: 1,
		routed: make([][]entry, len(c.targets)), report: newReport(),
		misses: make([]int64, c.endStage()), told: make([]int64, c.endStage()),
	}
	l.labels = labelsOf(l)
	l.renew()

	return l
}

// name is the lane's name in actor names and reports.
func (l *lane) name() string { return l.ch.spec.Name + "-" + strconv.Itoa(l.num) }

// Receive is the lane's actor behaviour.
func (l *lane) Receive(c actor.Context) {
	defer l.ch.contain("a lane")

	pprof.SetGoroutineLabels(l.labels) // each run of the mailbox may have another goroutine

	switch m := c.Message().(type) {
	case *actor.Started:
		l.pid = c.Self()

		if err := l.open(); err != nil {
			l.ch.root.Send(l.ch.engine, &laneFailed{lane: l, err: err})

			return
		}

		l.ch.root.Send(l.ch.engine, &laneReady{lane: l})
	case wake:
		l.loop()
	case *flush:
		l.dropParked(m)
		l.loop()
	case *actor.Stopping:
		l.inbox.drop(l)

		if l.timer != nil {
			l.timer.Stop()
		}
	case *actor.Stopped:
		err := l.close()
		l.ch.root.Send(l.ch.engine, &laneClosed{lane: l, err: err})
	}
}

// open makes and opens the lane's instances of the stages.
func (l *lane) open() error {
	spec := l.ch.spec

	chain, err := pipeline.NewChain(spec.Name, spec.Stages, pipeline.ChainHooks{Out: l.out, Failed: l.failed})
	if err != nil {
		return err
	}

	l.chain = chain

	if err := pipeline.Guard(spec.Name, "open", func() error { return chain.Open(l.parent) }); err != nil {
		return err
	}

	for stage, m := range chain.Meters() {
		l.meters = append(l.meters, meter{stage, m})
	}

	if spec.Gather == nil {
		return nil
	}

	if l.gather, err = spec.Gather.New(); err != nil {
		return pipeline.AsStageError(spec.Name, spec.Gather.Name, err)
	}

	if m, ok := l.gather.(pipeline.Meter); ok {
		l.meters = append(l.meters, meter{l.ch.stageName(l.ch.endStage()), m})
	}

	if o, ok := l.gather.(pipeline.Opener); ok {
		if err := o.Open(l.parent); err != nil {
			return pipeline.AsStageError(spec.Name, spec.Gather.Name, err)
		}
	}

	return nil
}

// loop makes turns until nothing waits, but lets the mailbox have its say now and then.
func (l *lane) loop() {
	flood := false

	for range turnsPerWake {
		if l.stopping() {
			return
		}

		if l.ch.breaker.open() {
			if !l.gated() {
				return
			}

			continue
		}

		if flood {
			l.linger()
		}

		n, other := l.takeUp()
		l.ch.wake(other)

		flood = n == blockSize

		if n == 0 {
			if l.endTurn() {
				l.arm()
			}

			return
		}

		if !l.turn(n) {
			return
		}
	}

	l.ch.root.Send(l.pid, wake{})
}

// linger lets others run for a moment when nothing waits: after a full turn the next messages are about to come, and to
// sleep and be woken for them costs more than to wait.
func (l *lane) linger() {
	for range lingerYields {
		if l.inbox.size() > 0 || l.stopping() {
			return
		}

		runtime.Gosched()
	}
}

// stopping says that the job gives up what is unfinished.
func (l *lane) stopping() bool { return l.parent.Err() != nil }

// takeUp fills grab with what is due for a retry, otherwise with what waits in the inbox.
func (l *lane) takeUp() (int, *lane) {
	if len(l.parking.parked)+len(l.parking.holds) > 0 {
		l.mu.Lock()
		n := l.parking.due(l.ch.clock.now(), l.grab[:])
		l.mu.Unlock()

		if n > 0 {
			return n, nil
		}
	}

	return l.inbox.take(l, l.grab[:l.want])
}

// arm sets the timer to the next thing that must happen without a message: a retry or a batch that has waited enough.
func (l *lane) arm() {
	at, ok := l.parking.next()

	if len(l.pending) > 0 {
		full := l.pendingSince + int64(l.ch.spec.Batch.Every)
		if !ok || full < at {
			at, ok = full, true
		}
	}

	l.alarm(at, ok)
}

// alarm sets the timer, or stops it.
func (l *lane) alarm(at int64, ok bool) {
	switch {
	case !ok && l.timer != nil:
		l.timer.Stop()
	case !ok:
	case l.timer == nil:
		l.timer = time.AfterFunc(l.until(at), l.ring)
	default:
		l.timer.Reset(l.until(at))
	}
}

func (l *lane) until(at int64) time.Duration { return max(time.Duration(at-l.ch.clock.now()), 0) }

// ring is called by the timer, on a goroutine of its own.
func (l *lane) ring() { l.ch.root.Send(l.pid, wake{}) }

// renew gives the lane a fresh context for its calls.
func (l *lane) renew() {
	ctx, cancel := context.WithCancelCause(l.parent)
	l.call.Store(&callContext{Context: ctx, cancel: cancel})
}

// close ends the instances; only a lane that is not fenced may be closed while others look.
func (l *lane) close() error {
	l.call.Load().cancel(errStopping)

	if l.chain == nil {
		return nil
	}

	return pipeline.Guard(l.ch.spec.Name, "close", func() error {
		err := l.chain.Close()

		if c, ok := l.gather.(interface{ Close() error }); ok {
			err = errors.Join(err, c.Close())
		}

		return err
	})
}

// dropParked gives up the parked messages that nobody is going to wait for.
func (l *lane) dropParked(f *flush) {
	l.mu.Lock()
	dropped := l.parking.drop(func(e *entry, due int64) bool {
		return !e.t.wanted() && due > f.by
	})
	l.mu.Unlock()

	for i := range dropped {
		l.report.giveUp(dropped[i].t)
	}
}
