package actors

import (
	"context"
	"runtime"
	"testing"

	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

const (
	benchMessages = 1_000_000
	// benchAllocs is the most allocations a message. It is not 0, since each batch of 256 allocates a few times: messages
	// between actors, their mailboxes, and the goroutine that pulls.
	benchAllocs = 0.04
)

func identity(name string) pipeline.Stage {
	return pipeline.Func(name, func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error { return emit(m) })
}

// BenchmarkIdentity sends a million messages an operation through three stages that do nothing. It fails when the
// runtime's path allocates, also where it runs only once.
func BenchmarkIdentity(b *testing.B) {
	var mallocs uint64

	for b.Loop() {
		mallocs += throughIdentity(b)
	}

	messages := float64(b.N) * benchMessages
	allocs := float64(mallocs) / messages

	b.ReportMetric(messages/b.Elapsed().Seconds()/1e6, "M/s")
	b.ReportMetric(allocs, "allocs/message")

	if allocs > benchAllocs {
		b.Errorf("%.3f allocations a message; at most %v are allowed", allocs, benchAllocs)
	}
}

// throughIdentity returns the allocations of one run, those of its start and end left out.
func throughIdentity(b *testing.B) uint64 {
	b.Helper()

	sink := consumertest.NewCountingSink(benchMessages)
	job := pipeline.Job{
		Name:   "bench",
		Source: pipeline.Source{Topics: []string{"in"}},
		Channels: []pipeline.Channel{{
			Name: "work", Lanes: 2, Sink: sink,
			Stages: []pipeline.Stage{identity("a"), identity("b"), identity("c")},
		}},
	}

	tap := consumertest.NewTap("in", benchMessages)

	r, err := Start(job, tap, Options{})
	if err != nil {
		b.Fatal(err)
	}

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)
	<-sink.Full()
	runtime.ReadMemStats(&after)

	if report := r.Drain(0); report.Err != nil {
		b.Fatal(report.Err)
	}

	return after.Mallocs - before.Mallocs
}
