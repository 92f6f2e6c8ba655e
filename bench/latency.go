package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// What is promised: at this pace, the 99th percentile from the moment a message is due until its sink has it is at most this
// much above what the harness measures of itself, with a Go channel in the place of the job.
const (
	pace       = 50_000
	paceStep   = 200 * time.Microsecond
	maxOverP99 = 1500 // microseconds
)

// latency paces messages through a job and through a Go channel.
func latency(o options) ([]line, error) {
	var ours, floor [2][]float64

	rounds := max(o.rounds/2, 1)
	for range rounds {
		for side, measure := range []func(time.Duration) ([]time.Duration, error){pacedThroughActors, pacedThroughChannel} {
			times, err := measure(o.paced)
			if err != nil {
				return nil, err
			}

			slices.Sort(times)

			to := &ours
			if side == 1 {
				to = &floor
			}

			to[0] = append(to[0], micros(times[len(times)/2]))
			to[1] = append(to[1], micros(times[len(times)*99/100]))
		}
	}

	over := make([]float64, rounds)
	for i := range over {
		over[i] = ours[1][i] - floor[1][i]
	}

	return []line{
		newLine("latency", "50,000 messages/s, actors, p50", median(ours[0]), "us"),
		newLine("latency", "50,000 messages/s, actors, p99", median(ours[1]), "us"),
		newLine("latency", "the harness alone, p50", median(floor[0]), "us"),
		newLine("latency", "the harness alone, p99", median(floor[1]), "us"),
		newLine("latency", "p99 above the harness", median(over), "us").atMost(maxOverP99),
	}, nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// paced calls send with the messages that have become due, in steps, for a while. It never falls behind for good: what
// is late is sent at once and counts as late.
func paced(d time.Duration, send func([]*pipeline.Message)) int {
	start := time.Now()
	sent := 0

	tick := time.NewTicker(paceStep)
	defer tick.Stop()

	for elapsed := time.Duration(0); elapsed < d; elapsed = time.Since(start) {
		due := int(elapsed.Seconds() * pace)
		batch := make([]*pipeline.Message, 0, due-sent)

		for ; sent < due; sent++ {
			at := start.Add(time.Duration(float64(sent) / pace * float64(time.Second)))
			batch = append(batch, &pipeline.Message{Born: at, Body: []byte("x")})
		}

		if len(batch) > 0 {
			send(batch)
		}

		<-tick.C
	}

	return sent
}

// stopwatch is a sink that notes how long each message took since it was due.
type stopwatch struct {
	mu    sync.Mutex
	times []time.Duration
}

func (s *stopwatch) Write(_ context.Context, batch []*pipeline.Message) error {
	now := time.Now()

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, m := range batch {
		s.times = append(s.times, now.Sub(m.Born))
	}

	return nil
}

// all returns the times when there are n of them.
func (s *stopwatch) all(n int) []time.Duration {
	for range time.Tick(time.Millisecond) {
		s.mu.Lock()
		full := len(s.times) >= n
		s.mu.Unlock()

		if full {
			break
		}
	}

	return s.times
}

func pacedThroughActors(d time.Duration) ([]time.Duration, error) {
	from, watch := newFeed(), &stopwatch{}

	r, err := actors.Start(newJob(watch), from, actors.Options{})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}

	times := watch.all(paced(d, from.publish))

	return times, r.Drain(0).Err
}

func pacedThroughChannel(d time.Duration) ([]time.Duration, error) {
	const room = 1024

	var (
		watch = &stopwatch{}
		ch    = make(chan []*pipeline.Message, room)
		done  = make(chan error, 1)
	)

	go func() {
		for batch := range ch {
			if err := watch.Write(context.Background(), batch); err != nil {
				done <- err

				return
			}
		}

		done <- nil
	}()

	n := paced(d, func(batch []*pipeline.Message) { ch <- batch })

	close(ch)

	if err := <-done; err != nil {
		return nil, err
	}

	return watch.all(n), nil
}
