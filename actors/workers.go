package actors

import (
	"context"
	"runtime/pprof"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
)

const (
	// maxIdle bounds how many goroutines wait for work. More of them run when more mailboxes have something.
	maxIdle = 256
	// throughput is how many messages an actor gets before it gives way to other goroutines; protoactor-go's own is the same.
	throughput = 300
)

// workers is the dispatcher of a job's actors: the goroutines that run mailboxes. One that is through with a mailbox waits for
// another. A goroutine begins with a small stack, and copies it each time that it has to grow; one for each run, as
// protoactor-go's dispatcher starts them, spends a tenth of a job's processor time on that where batches are small.
type workers struct {
	work chan func()
	over <-chan struct{} // closed when nobody need wait any more
	idle atomic.Int32
}

var _ actor.Dispatcher = (*workers)(nil)

func newWorkers(over <-chan struct{}) *workers { return &workers{work: make(chan func()), over: over} }

// Schedule has a goroutine run f.
func (w *workers) Schedule(f func()) {
	select {
	case w.work <- f:
	default:
		go w.run(f)
	}
}

// Throughput is part of [actor.Dispatcher].
func (w *workers) Throughput() int { return throughput }

func (w *workers) run(f func()) {
	for {
		f()
		pprof.SetGoroutineLabels(context.Background()) // those of a lane, perhaps

		if w.idle.Add(1) > maxIdle {
			w.idle.Add(-1)

			return
		}

		select {
		case f = <-w.work:
			w.idle.Add(-1)
		case <-w.over:
			return
		}
	}
}

// propsOf returns how an actor of the job is spawned.
func (j *job) propsOf(a actor.Actor) *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithDispatcher(j.workers))
}
