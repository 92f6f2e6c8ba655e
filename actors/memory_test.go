package actors_test

import (
	"context"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const mebi = 1 << 20

// spring is a broker of one queue that never ends: it makes messages of 1 MiB as they are pulled.
type spring struct {
	consumer.Member

	made atomic.Int64
}

func (s *spring) Join(context.Context, consumer.Subscription) (consumer.Member, error) { return s, nil }

func (s *spring) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	if known == 0 {
		return consumer.Assignment{Generation: 1, Leases: []consumer.Lease{{Queue: queue(0), Epoch: 1}}}, nil
	}

	<-ctx.Done()

	return consumer.Assignment{}, ctx.Err()
}

func (s *spring) Stored(context.Context, pipeline.Queue) (consumer.Checkpoint, error) {
	return consumer.Checkpoint{}, nil
}

func (s *spring) Pull(_ context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit) (consumer.Batch, error) {
	const end = 1 << 40

	b := consumer.Batch{Next: from, End: end}

	for room := limit.Bytes; len(b.Messages) == 0 || len(b.Messages) < limit.Messages && room >= mebi; room -= mebi {
		s.made.Add(1)

		b.Messages = append(b.Messages, &pipeline.Message{
			ID: strconv.Itoa(int(b.Next)), Body: make([]byte, mebi-100),
			Origin: pipeline.Origin{Queue: l.Queue, Offset: b.Next, Epoch: l.Epoch, Delivery: 1},
		})
		b.Next++
	}

	return b, nil
}

func (s *spring) Commit(context.Context, consumer.Lease, consumer.Checkpoint) error { return nil }
func (s *spring) Release(context.Context, consumer.Lease) error                     { return nil }
func (s *spring) Leave(context.Context) error                                       { return nil }

// valve is a sink that lets as many messages pass as it is given leave for.
type valve struct {
	leave  chan int
	passed atomic.Int64
}

func (v *valve) Write(ctx context.Context, batch []*pipeline.Message) error {
	for left := len(batch); left > 0; {
		select {
		case n := <-v.leave:
			if n > left {
				v.leave <- n - left
			}

			left -= min(n, left)
		case <-ctx.Done():
			return ctx.Err()
		}
	}

	v.passed.Add(int64(len(batch)))

	return nil
}

// blocked waits until the queue is not pulled for want of credit, and returns what is alive on the heap then.
func blocked(t *testing.T, r *actors.Running, sink *valve, passed int64) int64 {
	t.Helper()

	for deadline := time.After(time.Minute); ; {
		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		if len(s.Queues) == 1 && s.Queues[0].Waits == "credit" && sink.passed.Load() >= passed {
			break
		}

		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("nothing waits for credit: %+v", s.Queues)
		}
	}

	return heap()
}

func heap() int64 {
	var m runtime.MemStats

	runtime.GC()
	runtime.GC() // what was in pools goes with the second one
	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc)
}

// It measures the heap of the process, so it runs alone.
func TestAllocatedMemoryStaysFlatBehindABlockedSink(t *testing.T) {
	const (
		limit = 32 * mebi
		slack = 8 * mebi // a pull of 128 KiB or one message, the runtime's own, and what a garbage collection is late with
		more  = 512
	)

	broker, sink := &spring{}, &valve{leave: make(chan int, 1)}
	before := heap()

	r, err := actors.Start(job(pipeline.Channel{Name: "work", Lanes: 2, Timeout: time.Hour, Sink: sink, Batch: pipeline.Batch{Messages: 4}}),
		broker, actors.Options{Limits: consumer.Limits{Bytes: limit}})
	if err != nil {
		t.Fatal(err)
	}

	defer r.Drain(-1)

	first := blocked(t, r, sink, 0) - before
	if first > limit+slack || first < limit-slack {
		t.Errorf("%d MiB are alive behind a limit of %d MiB", first/mebi, limit/mebi)
	}

	sink.leave <- more

	second := blocked(t, r, sink, more-8) - before
	t.Logf("alive: %d MiB, and %d MiB after another %d MiB have passed; the broker made %d MiB",
		first/mebi, second/mebi, more, broker.made.Load())

	if second > limit+slack {
		t.Errorf("%d MiB are alive behind a limit of %d MiB after another %d MiB have passed", second/mebi, limit/mebi, more)
	}

	if made := broker.made.Load(); made < more || made > more+limit/mebi+8 {
		t.Errorf("the broker made %d messages", made)
	}
}
