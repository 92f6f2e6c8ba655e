package main

import (
	"context"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// feed is a broker of one queue in memory that only hands over what it is given: the least that a job needs, so that what is
// measured is the job.
type feed struct {
	consumer.Member // what a job that never fails does not call

	mu    sync.Mutex
	ready chan struct{} // closed when there is something to pull
	queue []*pipeline.Message
	next  pipeline.Offset
	lease consumer.Lease
}

var _ consumer.Member = (*feed)(nil)

func newFeed() *feed {
	return &feed{
		ready: make(chan struct{}), lease: consumer.Lease{Queue: pipeline.Queue{Topic: "bench"}, Epoch: 1},
	}
}

// publish hands messages over.
func (f *feed) publish(messages []*pipeline.Message) {
	f.mu.Lock()
	defer f.mu.Unlock()

	if len(f.queue) == 0 {
		close(f.ready)
	}

	f.queue = append(f.queue, messages...)
}

// Pull waits for messages and hands them out in order. A job asks for each offset once.
func (f *feed) Pull(ctx context.Context, _ consumer.Lease, _ pipeline.Offset, l consumer.Limit) (consumer.Batch, error) {
	f.mu.Lock()
	ready := f.ready
	f.mu.Unlock()

	select {
	case <-ctx.Done():
		return consumer.Batch{}, ctx.Err()
	case <-ready:
	}

	f.mu.Lock()
	defer f.mu.Unlock()

	n := min(l.Messages, len(f.queue))
	batch := f.queue[:n:n]
	f.queue = f.queue[n:]

	for _, m := range batch {
		m.Origin = pipeline.Origin{Queue: f.lease.Queue, Offset: f.next, Epoch: f.lease.Epoch, Delivery: 1}
		f.next++
	}

	if len(f.queue) == 0 {
		f.queue, f.ready = nil, make(chan struct{})
	}

	return consumer.Batch{Messages: batch, Next: f.next, End: f.next + pipeline.Offset(len(f.queue))}, nil
}

// Join makes the caller the only member.
func (f *feed) Join(context.Context, consumer.Subscription) (consumer.Member, error) { return f, nil }

// Assigned returns the one lease, and nothing new after that.
func (f *feed) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	if known == 0 {
		return consumer.Assignment{Generation: 1, Leases: []consumer.Lease{f.lease}}, nil
	}

	<-ctx.Done()

	return consumer.Assignment{}, ctx.Err()
}

// Stored says that nothing has been read.
func (f *feed) Stored(context.Context, pipeline.Queue) (consumer.Checkpoint, error) {
	return consumer.Checkpoint{}, nil
}

// Commit takes a checkpoint and forgets it.
func (f *feed) Commit(context.Context, consumer.Lease, consumer.Checkpoint) error { return nil }

// Release ends nothing.
func (f *feed) Release(context.Context, consumer.Lease) error { return nil }

// Leave ends nothing.
func (f *feed) Leave(context.Context) error { return nil }
