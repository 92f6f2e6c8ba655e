package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/exec"
	"github.com/millrace/millrace/plugins/wasm"
	"github.com/millrace/millrace/plugins/wasm/wasmtest"
)

// What is promised of identity stages that are not ours, in messages of 1 KiB a second: a Python program that gets batches,
// and a WebAssembly module that gets messages.
const (
	minExec = 100_000
	minWASM = 300_000
)

// outside runs jobs of two lanes whose stage is a program, and a module.
func outside(o options) ([]line, error) {
	code, err := wasmtest.Build(context.Background(), "./guest")
	if err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}

	lanes, err := wasm.Lanes(wasm.Options{Module: "guest", Code: code}, nil)
	if err != nil {
		return nil, fmt.Errorf("module: %w", err)
	}

	program := exec.Options{
		Command: []string{"python3", "-B", "-c", "import millrace; millrace.run(lambda m: m)"}, Dir: "../plugins/exec/python",
	}
	gather := &pipeline.GatherStage{Name: "exec", New: func() (pipeline.BatchTransform, error) { return exec.New(program, nil) }}

	n := o.messages / 10 // they are slower than the identity stages of our own, for which the flag is

	programs, modules, _, err := turns(o.rounds,
		func() (float64, error) { return throughStage(n, pipeline.Channel{Gather: gather}) },
		func() (float64, error) {
			return throughStage(n, pipeline.Channel{Stages: []pipeline.Stage{{Name: "wasm", New: lanes}}})
		})
	if err != nil {
		return nil, err
	}

	return []line{
		newLine("plugins", "1 KiB, identity in Python by exec, in batches", programs, "msg/s").atLeast(minExec),
		newLine("plugins", "1 KiB, identity in Go by wasm", modules, "msg/s").atLeast(minWASM),
	}, nil
}

// milestone is a sink that tells when the first message has come, and when all have.
type milestone struct {
	first, last chan struct{}
	seen        atomic.Int64
	all         int64
}

func newMilestone(all int) *milestone {
	return &milestone{first: make(chan struct{}), last: make(chan struct{}), all: int64(all)}
}

// Write counts.
func (m *milestone) Write(_ context.Context, batch []*pipeline.Message) error {
	seen := m.seen.Add(int64(len(batch)))

	if before := seen - int64(len(batch)); before == 0 {
		close(m.first)
	}

	if seen == m.all {
		close(m.last)
	}

	return nil
}

// throughStage returns messages a second, from when a first one has shown that the stage runs.
func throughStage(n int, work pipeline.Channel) (float64, error) {
	from, sink, body := newFeed(), newMilestone(n+1), newBodies()[0]

	messages := make([]*pipeline.Message, n+1)
	for i := range messages {
		messages[i] = &pipeline.Message{ID: "id", Body: body}
	}

	work.Name, work.Lanes, work.Routes = "work", 2, []pipeline.Route{{To: "end"}}

	job := newJob(sink)
	job.Channels = []pipeline.Channel{work, {Name: "end", Sink: sink}}

	r, err := actors.Start(job, from, actors.Options{})
	if err != nil {
		return 0, fmt.Errorf("start: %w", err)
	}

	var start time.Time

	for _, part := range []struct {
		messages []*pipeline.Message
		done     <-chan struct{}
	}{{messages[:1], sink.first}, {messages[1:], sink.last}} {
		start = time.Now()

		from.publish(part.messages)

		select {
		case <-part.done:
		case <-r.Stopped():
			return 0, fmt.Errorf("the job has stopped: %w", r.Report().Err)
		}
	}

	took := time.Since(start)

	if report := r.Drain(0); report.Err != nil {
		return 0, report.Err
	}

	return float64(n) / took.Seconds(), nil
}
