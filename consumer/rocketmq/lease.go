package rocketmq

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// lease is a member's hold of one queue, from when it is assigned until it is taken away.
type lease struct {
	consumer.Lease

	progress progress

	// suggested is the id of the broker's server that the last answer suggested for reading.
	suggested atomic.Int64
	// reading is what lies ready for the next pull; nil while somebody pulls, or when nothing does.
	reading atomic.Pointer[reading]

	ctx context.Context //nolint:containedctx // ends with the lease; its cause says why
	end context.CancelCauseFunc

	// lockedAt is when the broker granted or renewed the lock, doomed when a queue that was taken away is given up without
	// a release; zero while it is owned. Both are guarded by member.mu.
	lockedAt, doomed time.Time

	// committing serialises commits, and guards what follows.
	committing sync.Mutex
	// tail is what is known of the queue's checkpoint records; nil before they were looked at.
	tail *tail
}

// progress is what administrators may ask about a queue: when it was pulled last, in milliseconds, and from where on it is to be
// pulled next; when something was committed last under the lease, and what, which before that is where it began. It is safe for
// concurrent use.
type progress struct {
	pulledAt, next, committedAt, committed atomic.Int64
}

func (p *progress) pulls(from pipeline.Offset) {
	if p.pulledAt.Swap(time.Now().UnixMilli()) == 0 {
		p.committed.CompareAndSwap(0, int64(from))
	}
}

func (p *progress) commits(next pipeline.Offset) {
	p.committed.Store(int64(next))
	p.committedAt.Store(time.Now().UnixMilli())
}

func newLease(l consumer.Lease) *lease {
	made := &lease{Lease: l}
	made.ctx, made.end = context.WithCancelCause(context.Background())

	return made
}

// during returns a context that ends with the lease as well. The caller calls the function that comes with it.
func (l *lease) during(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(l.ctx, cancel)

	return ctx, func() {
		stop()
		cancel()
	}
}

// over returns why the lease has ended, or nil.
func (l *lease) over() error { return context.Cause(l.ctx) }

// blame returns what ended the lease when that is why a call under it failed, or the caller's own end, or err.
func (l *lease) blame(ctx context.Context, err error) error {
	if cause := l.over(); cause != nil {
		return cause
	}

	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return cause
	}

	return err
}

// lease returns the lease that l names while it is owned.
func (m *member) lease(q pipeline.Queue, epoch uint64) (*lease, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.cause != nil {
		return nil, m.cause
	}

	held := m.leases[q]

	switch {
	case held == nil, held.Epoch != epoch && !held.Reset:
		return nil, consumer.ErrNotOwner
	case held.Epoch != epoch:
		return nil, consumer.ErrReset
	case held.over() != nil:
		return nil, held.over()
	default:
		return held, nil
	}
}

// answerable returns the lease that a commit may be made under: also one whose queue is locked and was taken away, until it
// is released.
func (m *member) answerable(l consumer.Lease) (*lease, error) {
	held, err := m.lease(l.Queue, l.Epoch)
	if err == nil {
		return held, nil
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	if held := m.leaving[l.Queue]; m.cause == nil && held != nil && held.Lease == l {
		return held, nil
	}

	return nil, err
}
