package rocketmq

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/consumer"
)

// lease is a member's hold of one queue, from when it is assigned until it is taken away (or, where the broker holds queues
// back, released).
type lease struct {
	consumer.Lease

	// suggested is the id of the broker's server that the last answer suggested for reading.
	suggested atomic.Int64
	// damaged is the offset whose record could not be read when it was pulled last, below 0 for none.
	damaged atomic.Int64
	// committed is the offset that was committed or looked up last, pulled when messages came last (ms); both are for
	// consoles only.
	committed, pulled atomic.Int64

	mu    sync.Mutex
	cause error // why the lease has ended; nil while it lasts
	calls map[*context.CancelCauseFunc]struct{}

	// committing serialises commits, and guards what follows.
	committing sync.Mutex
	kept       kept

	// lockedAt is when the broker granted or renewed the lock, doomed when a queue that was taken away is given up without
	// a release; zero while it is owned. Both are guarded by member.mu.
	lockedAt, doomed time.Time
}

func newLease(l consumer.Lease) *lease {
	made := &lease{Lease: l, calls: map[*context.CancelCauseFunc]struct{}{}}
	made.damaged.Store(-1)

	return made
}

// during returns a context that ends with the lease as well; its cause tells which. The caller calls the function that comes
// with it when its work is done.
func (l *lease) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.cause != nil {
		cancel(l.cause)
	} else {
		l.calls[&cancel] = struct{}{}
	}

	return ctx, func() {
		l.mu.Lock()
		delete(l.calls, &cancel)
		l.mu.Unlock()
		cancel(nil)
	}
}

// end ends the lease and the calls under it. Only the first cause counts.
func (l *lease) end(cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.cause != nil {
		return
	}

	l.cause = cause
	for cancel := range l.calls {
		(*cancel)(cause)
	}
}

// over returns why the lease has ended, or nil.
func (l *lease) over() error {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.cause
}
