package consumertest

import (
	"context"
	"sync/atomic"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	tapBatch = 256
	// tapRings is twice what the default limits let be in flight, so that no message is handed out again too early.
	tapRings = 2 * consumer.DefaultMessages / tapBatch
	tapBody  = 100
)

// Tap is a broker of one queue that never runs dry: it hands out the same messages again and again under new offsets,
// without allocating, so that a benchmark measures the runtime and nothing else. It ends at a given offset, where pulls wait.
// The messages in flight must be no more than the default limits allow. A Tap serves one member.
type Tap struct {
	consumer.Member

	lease consumer.Lease
	end   pipeline.Offset
	rings [][]*pipeline.Message
	turn  int
}

var _ consumer.Broker = (*Tap)(nil)

// NewTap returns a Tap for a topic, with end messages of 100 bytes in it.
func NewTap(topic string, end pipeline.Offset) *Tap {
	t := &Tap{
		lease: consumer.Lease{Queue: pipeline.Queue{Topic: topic}, Epoch: 1}, end: end,
		rings: make([][]*pipeline.Message, tapRings),
	}

	for i := range t.rings {
		t.rings[i] = make([]*pipeline.Message, tapBatch)
		for k := range t.rings[i] {
			t.rings[i][k] = &pipeline.Message{ID: "id", Topic: topic, Body: make([]byte, tapBody)}
		}
	}

	return t
}

// Lease returns the only queue and its epoch.
func (t *Tap) Lease() consumer.Lease { return t.lease }

// Join returns the Tap itself.
func (t *Tap) Join(context.Context, consumer.Subscription) (consumer.Member, error) { return t, nil }

// Assigned returns the one queue, and then waits for ctx.
func (t *Tap) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	if known == 0 {
		return consumer.Assignment{Generation: 1, Leases: []consumer.Lease{t.lease}}, nil
	}

	<-ctx.Done()

	return consumer.Assignment{}, context.Cause(ctx)
}

// Stored says that the group is at offset 0.
func (t *Tap) Stored(context.Context, pipeline.Queue) (consumer.Checkpoint, error) {
	return consumer.Checkpoint{}, nil
}

// Pull returns up to 256 messages at once, or waits for ctx at the end.
func (t *Tap) Pull(ctx context.Context, _ consumer.Lease, from pipeline.Offset, l consumer.Limit) (consumer.Batch, error) {
	if from >= t.end {
		<-ctx.Done()

		return consumer.Batch{}, context.Cause(ctx)
	}

	ring := t.rings[t.turn%tapRings]
	t.turn++
	ring = ring[:min(l.Messages, tapBatch, int(t.end-from))]

	for i, m := range ring {
		m.Origin = pipeline.Origin{
			Queue: t.lease.Queue, Offset: from + pipeline.Offset(i), Epoch: t.lease.Epoch, Delivery: 1,
		}
	}

	return consumer.Batch{Messages: ring, Next: from + pipeline.Offset(len(ring)), End: t.end}, nil
}

// Commit takes everything.
func (t *Tap) Commit(context.Context, consumer.Lease, consumer.Checkpoint) error { return nil }

// Release does nothing.
func (t *Tap) Release(context.Context, consumer.Lease) error { return nil }

// Leave does nothing.
func (t *Tap) Leave(context.Context) error { return nil }

// CountingSink counts messages and keeps none. It is safe for concurrent use.
type CountingSink struct {
	count atomic.Int64
	want  int64
	full  chan struct{}
}

var _ pipeline.Sink = (*CountingSink)(nil)

// NewCountingSink returns a sink that is full after so many messages.
func NewCountingSink(want int64) *CountingSink {
	return &CountingSink{want: want, full: make(chan struct{})}
}

// Write counts the batch.
func (s *CountingSink) Write(_ context.Context, batch []*pipeline.Message) error {
	n := int64(len(batch))
	if now := s.count.Add(n); now >= s.want && now-n < s.want {
		close(s.full)
	}

	return nil
}

// Full is closed when the wanted messages have been written.
func (s *CountingSink) Full() <-chan struct{} { return s.full }
