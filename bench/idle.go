package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/embedded"
)

// maxIdle is the promised share of a core, in percent.
const maxIdle = 0.5

// idle watches a job over the embedded broker that has nothing to do.
func idle(o options) (lines []line, err error) {
	dir, err := os.MkdirTemp(o.dir, "bench-idle-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}

	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	b, err := embedded.Open(embedded.Options{Dir: dir})
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}

	defer func() { err = errors.Join(err, b.Close()) }()

	if err := b.CreateTopic(context.Background(), "bench", queues); err != nil {
		return nil, fmt.Errorf("create: %w", err)
	}

	r, err := actors.Start(newJob(consumertest.NewCountingSink(1)), b, actors.Options{})
	if err != nil {
		return nil, fmt.Errorf("start: %w", err)
	}

	<-time.After(time.Second) // the start is not idleness

	before, start := processorTime(), time.Now()

	<-time.After(o.idle)

	share := 100 * (processorTime() - before).Seconds() / time.Since(start).Seconds()

	if report := r.Drain(0); report.Err != nil {
		return nil, report.Err
	}

	return []line{newLine("idle", "an idle job, embedded broker", share, "% of a core").atMost(maxIdle)}, nil
}

// processorTime returns what the process has used.
func processorTime() time.Duration {
	var u syscall.Rusage

	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)

	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
