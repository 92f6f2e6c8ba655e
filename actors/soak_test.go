package actors

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// soaked returns a number from the environment, which `make soak` raises, or what is enough for every day.
func soaked(t *testing.T, name string, usual int) int {
	t.Helper()

	text := os.Getenv(name)
	if text == "" {
		return usual
	}

	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}

	return n
}

// TellProgress says on stderr how far a long run is: a hundred times, and never in a run of every day. Lines reach the reader
// at once only where `go test` is run without naming a package.
func TellProgress(what string, done, of int) {
	const (
		long  = 1000
		times = 100
	)

	if of >= long && done%(of/times) == 0 {
		fmt.Fprintf(os.Stderr, "%s  %s: %d of %d\n", time.Now().Format(time.TimeOnly), what, done, of)
	}
}

// TestHoursOfTrouble lets random jobs run for hours of virtual time (MILLRACE_HOURS=24 for a day), with all that can go wrong
// going wrong again and again; in the end the committed offset is at the end of each queue and the books balance.
func TestHoursOfTrouble(t *testing.T) {
	t.Parallel()

	hours := soaked(t, "MILLRACE_HOURS", 1)
	seed := uint64(time.Now().UnixNano())

	for i := range uint64(3) {
		t.Run(strconv.FormatUint(seed+i, 10), func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, seed+i)
				w.lasts = time.Duration(hours) * time.Hour
				w.play()

				if len(w.broken) > 0 {
					t.Errorf("%q", w.broken)
				}

				t.Logf("%d hours: %+v", hours, w.stats)
			})
		})
	}
}

// TestHundredJobsStopAtOnce stops a hundred jobs of one process in the same moment: within a second none of them pulls any
// more, and all have ended by their deadline. That no goroutine is left is what the end of the bubble checks.
func TestHundredJobsStopAtOnce(t *testing.T) {
	t.Parallel()

	runtime.GC()

	var before, after runtime.MemStats

	runtime.ReadMemStats(&before)

	for range soaked(t, "MILLRACE_STOPS", 1) {
		synctest.Test(t, stopHundredJobs)
	}

	runtime.GC()
	runtime.ReadMemStats(&after)

	const room = 64 << 20 // other tests run beside this one

	if after.HeapAlloc > before.HeapAlloc+room {
		t.Errorf("%d bytes were in use before, %d are after", before.HeapAlloc, after.HeapAlloc)
	}
}

func stopHundredJobs(t *testing.T) {
	const (
		jobs   = 100
		budget = 5 * time.Second
	)

	b := consumertest.NewBroker(consumertest.Config{Seed: 1})
	running := make([]*Running, jobs)

	for i := range running {
		topic := fmt.Sprintf("in%d", i)
		b.CreateTopic(topic, 2)

		messages := make([]*pipeline.Message, 300)
		for n := range messages {
			messages[n] = &pipeline.Message{Key: strconv.Itoa(n % 7), Body: make([]byte, 50)}
		}

		if err := b.Publish(t.Context(), topic, messages); err != nil {
			t.Fatal(err)
		}

		running[i] = startSlowJob(t, b, i, topic)
	}

	<-time.After(3 * time.Second)

	asked := time.Now()
	reports := make([]*Report, jobs)

	var all sync.WaitGroup
	for i, r := range running {
		all.Go(func() { reports[i] = r.Drain(budget) })
	}

	all.Wait()

	if took := time.Since(asked); took > budget+time.Second {
		t.Errorf("%d jobs took %s to stop; the budget is %s", jobs, took, budget)
	}

	for i, r := range reports {
		if r.Err != nil || r.Took > budget+time.Second {
			t.Errorf("job %d: %+v", i, r)
		}
	}

	for _, c := range b.Calls(consumertest.OpDeliver) {
		if c.At.After(asked.Add(time.Second)) {
			t.Errorf("%s was delivered %s after the stop", c.ID, c.At.Sub(asked))
		}
	}

	b.Close()
	<-time.After(time.Minute) // protoactor's and the broker's timers
}

// startSlowJob starts a job that has much more to do than it gets done: its credit is spent all the time.
func startSlowJob(t *testing.T, b consumer.Broker, i int, topic string) *Running {
	t.Helper()

	sink := pipeline.SinkFunc(func(ctx context.Context, batch []*pipeline.Message) error {
		select {
		case <-time.After(time.Duration(50+10*(i%20)) * time.Millisecond * time.Duration(len(batch))):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})

	r, err := Start(pipeline.Job{
		Name: fmt.Sprintf("job%d", i), Source: pipeline.Source{Topics: []string{topic}},
		Channels: []pipeline.Channel{{Name: "work", Lanes: 2, Order: pipeline.OrderByKey, Sink: sink}},
	}, b, Options{Limits: consumer.Limits{Messages: 20}})
	if err != nil {
		t.Fatal(err)
	}

	return r
}
