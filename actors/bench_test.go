package actors

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// tap is a broker of one queue that never runs dry: it hands out the same messages again under new offsets, so that nothing
// is measured but the runtime.
type tap struct {
	consumer.Member

	limit pipeline.Offset
	rings [][]*pipeline.Message
	turn  int
}

func newTap(limit int) *tap {
	t := &tap{limit: pipeline.Offset(limit)}

	// More rings than the window has batches, so that no message is handed out again while it is in flight.
	for range 2 * consumer.DefaultMessages / blockSize {
		ring := make([]*pipeline.Message, blockSize)
		for i := range ring {
			ring[i] = &pipeline.Message{ID: "id", Body: make([]byte, 100)}
		}

		t.rings = append(t.rings, ring)
	}

	return t
}

func (t *tap) Join(context.Context, consumer.Subscription) (consumer.Member, error) { return t, nil }

func (t *tap) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	if known == 0 {
		q := pipeline.Queue{Topic: "in"}

		return consumer.Assignment{Generation: 1, Leases: []consumer.Lease{{Queue: q, Epoch: 1}}}, nil
	}

	<-ctx.Done()

	return consumer.Assignment{}, ctx.Err()
}

func (t *tap) Stored(context.Context, pipeline.Queue) (consumer.Checkpoint, error) {
	return consumer.Checkpoint{}, nil
}

func (t *tap) Pull(ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit) (consumer.Batch, error) {
	if from >= t.limit {
		<-ctx.Done()

		return consumer.Batch{}, ctx.Err()
	}

	ring := t.rings[t.turn%len(t.rings)]
	t.turn++
	n := min(limit.Messages, len(ring))

	for i, m := range ring[:n] {
		m.Origin = pipeline.Origin{Queue: l.Queue, Offset: from + pipeline.Offset(i), Epoch: l.Epoch, Delivery: 1}
	}

	next := from + pipeline.Offset(n)

	return consumer.Batch{Messages: ring[:n], Next: next, End: next}, nil
}

func (t *tap) Commit(context.Context, consumer.Lease, consumer.Checkpoint) error { return nil }
func (t *tap) Release(context.Context, consumer.Lease) error                     { return nil }
func (t *tap) Leave(context.Context) error                                       { return nil }

func identity(name string) pipeline.Stage {
	return pipeline.Func(name, func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error { return emit(m) })
}

type countingSink struct {
	n     atomic.Int64
	limit int64
	done  chan struct{}
}

func (s *countingSink) Write(_ context.Context, batch []*pipeline.Message) error {
	if n := s.n.Add(int64(len(batch))); n >= s.limit && n-int64(len(batch)) < s.limit {
		close(s.done)
	}

	return nil
}

func BenchmarkIdentity(b *testing.B) {
	b.ReportAllocs()

	sink := &countingSink{limit: int64(b.N), done: make(chan struct{})}
	job := pipeline.Job{
		Name:   "bench",
		Source: pipeline.Source{Topics: []string{"in"}},
		Channels: []pipeline.Channel{{
			Name: "work", Lanes: 2, Sink: sink,
			Stages: []pipeline.Stage{identity("a"), identity("b"), identity("c")},
		}},
	}

	b.ResetTimer()

	r, err := Start(job, newTap(b.N), Options{})
	if err != nil {
		b.Fatal(err)
	}

	<-sink.done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")

	if report := r.Drain(0); report.Err != nil {
		b.Fatal(report.Err)
	}
}

func BenchmarkHandFused(b *testing.B) {
	w := consumer.NewWindow(consumer.Limits{}, consumer.Checkpoint{})
	t := newTap(b.N)
	lease := consumer.Lease{Queue: pipeline.Queue{Topic: "in"}, Epoch: 1}
	var sunk int

	c := func(*pipeline.Message) { sunk++ }
	bb := func(m *pipeline.Message) { c(m) }
	a := func(m *pipeline.Message) { bb(m) }

	b.ResetTimer()

	for from := pipeline.Offset(0); int(from) < b.N; {
		batch, _ := t.Pull(b.Context(), lease, from, consumer.Limit{Messages: min(blockSize, b.N-int(from))})
		_ = w.Admit(consumer.Run{From: from, To: batch.Next}, int64(len(batch.Messages)*100))

		for _, m := range batch.Messages {
			a(m)
		}

		_ = w.Done(consumer.Run{From: from, To: batch.Next}, int64(len(batch.Messages)*100))
		from = batch.Next
	}

	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "M/s")
}
