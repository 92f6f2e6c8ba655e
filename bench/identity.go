package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

const million = 1e6

// What is promised: millions of messages a second, the share of the loop by hand, and allocations a message. The last is
// not 0 because the start of a job allocates and each batch of 256 does a few times.
const (
	minRate   = 15
	minByHand = 0.5
	maxAllocs = 0.05
)

// pass is the identity stage.
type pass struct{}

func (pass) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	return emit(m)
}

func stages() []pipeline.Stage {
	made := func() (pipeline.Transform, error) { return pass{}, nil }

	return []pipeline.Stage{{Name: "a", New: made}, {Name: "b", New: made}, {Name: "c", New: made}}
}

// newJob is three identity stages and a sink.
func newJob(sink pipeline.Sink) pipeline.Job {
	return pipeline.Job{
		Name:     "bench",
		Source:   pipeline.Source{Topics: []string{"bench"}, Start: pipeline.First},
		Channels: []pipeline.Channel{{Name: "work", Lanes: 2, Stages: stages(), Sink: sink}},
	}
}

// identity runs identity stages through the actors and through a loop that does the same by hand.
func identity(o options) ([]line, error) {
	var allocs float64

	framework := func() (float64, error) {
		rate, a, err := throughActors(o.messages)
		allocs = a

		return rate, err
	}

	ours, hand, ratio, err := turns(o.rounds, framework, func() (float64, error) { return byHand(o.messages) })
	if err != nil {
		return nil, err
	}

	return []line{
		newLine("identity", "three identity stages, actors", ours/million, "M/s").atLeast(minRate),
		newLine("identity", "the same, a loop written by hand", hand/million, "M/s"),
		newLine("identity", "actors / by hand", ratio, "").atLeast(minByHand),
		newLine("identity", "allocations a message, start included", allocs, "").atMost(maxAllocs),
	}, nil
}

// throughActors returns messages a second and allocations a message, the start of the job included.
func throughActors(messages int) (rate, allocs float64, err error) {
	sink := consumertest.NewCountingSink(int64(messages))
	tap := consumertest.NewTap("bench", pipeline.Offset(messages))

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	start := time.Now()

	r, err := actors.Start(newJob(sink), tap, actors.Options{})
	if err != nil {
		return 0, 0, fmt.Errorf("start: %w", err)
	}

	<-sink.Full()

	took := time.Since(start)

	runtime.ReadMemStats(&after)

	if report := r.Drain(0); report.Err != nil {
		return 0, 0, report.Err
	}

	n := float64(messages)

	return n / took.Seconds(), float64(after.Mallocs-before.Mallocs) / n, nil
}

// fused is the loop by hand: the stages called through their interface, the emits bound once, and all the books that
// must be kept, but no actors, no panic containment, no deadlines and no way to ask where a message is.
type fused struct {
	window *consumer.Window
	credit consumer.Credit
	refund consumer.Refund
	sink   pipeline.Sink
	first  func(context.Context, *pipeline.Message) error
	batch  []*pipeline.Message
}

func newFused(sink pipeline.Sink) *fused {
	f := &fused{
		window: consumer.NewWindow(consumer.Limits{}, consumer.Checkpoint{}),
		credit: consumer.NewCredit(consumer.Limits{}, 0), refund: consumer.NewRefund(0), sink: sink,
	}

	var a, b, c pipeline.Transform = pass{}, pass{}, pass{}

	ctx := context.Background()
	toSink := func(m *pipeline.Message) error { //nolint:unparam // an emit, as the stages take it
		f.batch = append(f.batch, m)

		return nil
	}
	toC := func(m *pipeline.Message) error { return c.Transform(ctx, m, toSink) }
	toB := func(m *pipeline.Message) error { return b.Transform(ctx, m, toC) }
	f.first = func(ctx context.Context, m *pipeline.Message) error { return a.Transform(ctx, m, toB) }

	return f
}

var errCredit = errors.New("the credit is spent and nobody gives it back")

// work takes one batch through admission, stages, sink and completion.
func (f *fused) work(ctx context.Context, messages []*pipeline.Message) error {
	var bytes int64

	for _, m := range messages {
		size := int64(m.Size())
		if !f.credit.Fits(m.Origin.Offset, size) {
			return errCredit
		}

		f.credit.Take(1, size)
		bytes += size
	}

	first, last := messages[0].Origin.Offset, messages[len(messages)-1].Origin.Offset
	if err := f.window.Admit(consumer.Run{From: first, To: last + 1}, bytes); err != nil {
		return fmt.Errorf("admit: %w", err)
	}

	f.batch = f.batch[:0]

	for _, m := range messages {
		if err := f.first(ctx, m); err != nil {
			return err
		}
	}

	if err := f.sink.Write(ctx, f.batch); err != nil {
		return fmt.Errorf("sink: %w", err)
	}

	for _, m := range f.batch {
		at, size := m.Origin.Offset, int64(m.Size())
		if err := f.window.Done(consumer.Run{From: at, To: at + 1}, size); err != nil {
			return fmt.Errorf("done: %w", err)
		}

		f.refund.Add(1, size, f.window.Min())
	}

	if inFlight, _ := f.window.InFlight(); f.refund.Due(consumer.Limits{}, inFlight) {
		f.credit.Give(f.refund.Take())
	}

	return nil
}

// byHand returns messages a second.
func byHand(messages int) (float64, error) {
	ctx := context.Background()
	tap := consumertest.NewTap("bench", pipeline.Offset(messages))
	f := newFused(consumertest.NewCountingSink(int64(messages)))
	start := time.Now()

	for next := pipeline.Offset(0); next < pipeline.Offset(messages); {
		room := f.credit.Room()

		batch, err := tap.Pull(ctx, tap.Lease(), next, consumer.Limit{Messages: min(room.Messages, 256), Bytes: 128 << 10})
		if err != nil {
			return 0, fmt.Errorf("pull: %w", err)
		}

		if err := f.work(ctx, batch.Messages); err != nil {
			return 0, err
		}

		next = batch.Next
	}

	return float64(messages) / time.Since(start).Seconds(), nil
}
