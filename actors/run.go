package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap/exp/zapslog"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Props returns the props of a job's engine, to be spawned below an actor of your own system. The engine answers
// [GetSnapshot], [Drain], [Pause], [Resume] and [Seek], publishes events on the system's EventStream, and stops when it
// has drained, or by itself after an error; its parent is told, others watch it. To stop it, send a [Drain]: stopping the
// actor outright leaves everything in flight unfinished. Each call returns props for one engine. An impossible job or wrong
// options are an error.
//
// The engine's own actors are its children, but the lanes of its channels are spawned at the root of the system, named
// below the engine, since a hung call must not keep your actors from stopping.
func Props(job pipeline.Job, broker consumer.Broker, opts Options) (*actor.Props, error) {
	return props(job, broker, opts, nil)
}

func props(job pipeline.Job, broker consumer.Broker, opts Options, onStop func(*Report)) (*actor.Props, error) {
	plan, opts, err := compile(job, opts)
	if err != nil {
		return nil, err
	}

	return propsOf(plan, broker, opts, onStop), nil
}

// compile checks a job and its options, and fills in what they leave to defaults.
func compile(job pipeline.Job, opts Options) (*pipeline.Plan, Options, error) {
	plan, err := pipeline.Compile(job)
	if err != nil {
		return nil, opts, fmt.Errorf("actors: %w", err)
	}

	opts, err = opts.withDefaults()

	return plan, opts, err
}

func propsOf(plan *pipeline.Plan, broker consumer.Broker, opts Options, onStop func(*Report)) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor {
		return &engine{
			job:      newJob(plan, broker, opts),
			lanes:    make(map[*lane]*laneRef),
			old:      make(map[*lane]*actor.PID),
			queues:   make(map[pipeline.Queue]*owned),
			restless: make(map[pipeline.Queue]int),
			seen:     make(map[pipeline.Queue]pipeline.Offset),
			onStop:   onStop,
		}
	})
}

// Run runs a job until ctx ends, then drains it and returns. It returns nil when everything that was pulled is finished and
// committed, an *[UnfinishedError] when the budget ended first, and otherwise the error that stopped the job. The
// broker stays open.
func Run(ctx context.Context, job pipeline.Job, broker consumer.Broker, opts Options) error {
	r, err := Start(job, broker, opts)
	if err != nil {
		return err
	}

	select {
	case <-ctx.Done():
		return r.Drain(0).err()
	case <-r.Stopped():
		return r.report.err()
	}
}

// UnfinishedError says that a job stopped before everything in flight was finished. It comes again.
type UnfinishedError struct{ Report *Report }

var _ error = (*UnfinishedError)(nil)

// Error says how many messages are unfinished and where the first one is.
func (e *UnfinishedError) Error() string {
	s := fmt.Sprintf("actors: %d messages are unfinished and come again", e.Report.UnfinishedCount)

	if len(e.Report.Unfinished) > 0 {
		u := e.Report.Unfinished[0]
		s += fmt.Sprintf("; the first is %s at %d, which %s", u.Queue, u.Offset, u.Holder)
	}

	return s
}

func (r *Report) err() error {
	switch {
	case r.Err != nil:
		return r.Err
	case r.UnfinishedCount > 0:
		return &UnfinishedError{Report: r}
	default:
		return nil
	}
}

// Running is a job in an actor system of its own. Its methods are safe for concurrent use.
type Running struct {
	system *actor.ActorSystem
	name   string
	plan   *pipeline.Plan
	pid    *actor.PID
	done   chan struct{}
	once   sync.Once
	report *Report
}

// Start starts a job in an actor system of its own and returns at once. Errors of the start that come later, like a topic
// that does not exist, stop the job; see Stopped.
func Start(job pipeline.Job, broker consumer.Broker, opts Options) (*Running, error) {
	plan, opts, err := compile(job, opts)
	if err != nil {
		return nil, err
	}

	r := &Running{name: job.Name, plan: plan, done: make(chan struct{})}

	r.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		if opts.Logger == nil {
			return slog.New(slog.DiscardHandler)
		}

		return slog.New(zapslog.NewHandler(opts.Logger.Named("actors").Core(), zapslog.AddStacktraceAt(slog.LevelError+1)))
	}))

	if r.pid, err = r.system.Root.SpawnNamed(propsOf(plan, broker, opts, r.stopped), job.Name); err != nil {
		return nil, fmt.Errorf("actors: spawn the engine: %w", err)
	}

	return r, nil
}

func (r *Running) stopped(report *Report) {
	r.once.Do(func() {
		r.report = report
		close(r.done)
	})
}

// Name returns the job's name.
func (r *Running) Name() string { return r.name }

// Plan returns the job as it runs, with every default filled in. It must not be changed.
func (r *Running) Plan() *pipeline.Plan { return r.plan }

// Stopped is closed when the job has ended, asked or by itself; Report then says how.
func (r *Running) Stopped() <-chan struct{} { return r.done }

// Report returns how the job ended, or nil while it runs.
func (r *Running) Report() *Report {
	select {
	case <-r.done:
		return r.report
	default:
		return nil
	}
}

// Drain stops the job as the message [Drain] does and waits for the end.
func (r *Running) Drain(budget time.Duration) *Report {
	r.system.Root.Send(r.pid, &Drain{Budget: budget})
	<-r.done

	return r.report
}

// ErrStopped is returned for a request to a job that has ended.
var ErrStopped = errors.New("actors: the job has stopped")

// Snapshot returns the state of the job.
func (r *Running) Snapshot(ctx context.Context) (*Snapshot, error) {
	return ask[*Snapshot](ctx, r, &GetSnapshot{})
}

// Pause stops pulling from a queue; see the message [Pause].
func (r *Running) Pause(ctx context.Context, q pipeline.Queue, why string) error {
	return r.do(ctx, &Pause{Queue: q, Why: why})
}

// Resume takes a pause back.
func (r *Running) Resume(ctx context.Context, q pipeline.Queue) error {
	return r.do(ctx, &Resume{Queue: q})
}

// Seek makes a queue go on at another offset; see the message [Seek]. It returns when the offset is committed.
func (r *Running) Seek(ctx context.Context, q pipeline.Queue, o pipeline.Offset) error {
	return r.do(ctx, &Seek{Queue: q, Offset: o})
}

// OnEvent calls f with every event of the job until the returned function is called. f runs on the goroutine of the actor
// that publishes: it must return at once, and must not call the methods of r and wait.
func (r *Running) OnEvent(f func(Event)) (unsubscribe func()) {
	sub := r.system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(Event); ok {
			f(e)
		}
	})

	return func() { r.system.EventStream.Unsubscribe(sub) }
}

func (r *Running) do(ctx context.Context, m any) error {
	d, err := ask[*Done](ctx, r, m)
	if err != nil {
		return err
	}

	return d.Err
}

// ask sends a request and waits for its answer, for ctx, or for the end of the job.
func ask[T any](ctx context.Context, r *Running, m any) (T, error) {
	var zero T

	answer := make(chan any, 1)
	pid := r.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		switch c.Message().(type) {
		case actor.SystemMessage, actor.AutoReceiveMessage:
		default:
			select {
			case answer <- c.Message():
			default:
			}
		}
	}))
	defer r.system.Root.Stop(pid)

	r.system.Root.RequestWithCustomSender(r.pid, m, pid)

	select {
	case <-ctx.Done():
		return zero, fmt.Errorf("actors: %T: %w", m, context.Cause(ctx))
	case <-r.done:
		return zero, ErrStopped
	case got := <-answer:
		if t, ok := got.(T); ok {
			return t, nil
		}

		if _, gone := got.(*actor.DeadLetterResponse); gone {
			return zero, ErrStopped
		}

		return zero, fmt.Errorf("actors: %T: unexpected answer %T", m, got)
	}
}
