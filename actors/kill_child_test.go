package actors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// What tells a process of this test binary that it is one of the lives of TestKilledProcessesLoseNothing.
const (
	killDir  = "MILLRACE_KILL_DIR"
	killLife = "MILLRACE_KILL_LIFE"
	// killLast says that nothing is published any more and that the process ends by itself when all is done.
	killLast = "MILLRACE_KILL_LAST"
)

const (
	killQueues   = 4
	killInFlight = 64
)

// ledger is an append-only file of what a life did. Each line ends in " ." so that a torn one is told from a whole one.
type ledger struct {
	mu   sync.Mutex
	file *os.File
}

func (l *ledger) add(lines ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	if _, err := l.file.WriteString(strings.Join(lines, " .\n") + " .\n"); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}

	return l.file.Sync()
}

// Write notes "<word> id queue offset" for each message.
func (l *ledger) Write(_ context.Context, batch []*pipeline.Message) error {
	return l.write("W", batch)
}

func (l *ledger) write(word string, batch []*pipeline.Message) error {
	lines := make([]string, len(batch))
	for i, m := range batch {
		lines[i] = fmt.Sprintf("%s %s %s %d", word, m.ID, m.Origin.Queue, m.Origin.Offset)
	}

	return l.add(lines...)
}

// numberOf returns the number at the end of an id.
func numberOf(id string) int {
	n, _ := strconv.Atoi(id[strings.LastIndexByte(id, '-')+1:])

	return n
}

// killJob fails some messages once, some for good, and holds some up, so that all that a checkpoint knows is in use.
func killJob(sink pipeline.Sink) pipeline.Job {
	trouble := pipeline.Func("trouble", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		switch n := numberOf(m.ID) % 100; {
		case n == 3:
			return pipeline.Reject(errBroken)
		case n == 23 && m.Origin.Delivery == 1:
			return errBroken
		case n == 43:
			select {
			case <-time.After(150 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
		}

		return emit(m)
	})

	return pipeline.Job{
		Name: "job", Source: pipeline.Source{Topics: []string{"in"}},
		Retry:    pipeline.RetryPolicy{Attempts: 3, Delays: []time.Duration{50 * time.Millisecond}},
		Channels: []pipeline.Channel{{Name: "work", Lanes: 4, Stages: []pipeline.Stage{trouble}, Sink: sink}},
	}
}

// TestKillChild is not a test of its own: it is one life of TestKilledProcessesLoseNothing, in a process of its own.
func TestKillChild(t *testing.T) {
	t.Parallel()

	dir := os.Getenv(killDir)
	if dir == "" {
		t.Skip("it is run by TestKilledProcessesLoseNothing")
	}

	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()

	life := os.Getenv(killLife)

	file, err := os.OpenFile(filepath.Join(dir, "ledger-"+life), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()

	books := &ledger{file: file}

	broker, err := embedded.Open(embedded.Options{Dir: filepath.Join(dir, "broker")})
	if err != nil {
		t.Fatal(err)
	}

	defer func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	}()

	if err := broker.CreateTopic(ctx, "in", killQueues); err != nil {
		t.Fatal(err)
	}

	r, err := actors.Start(killJob(books), broker, actors.Options{
		CommitEvery: 50 * time.Millisecond, Limits: consumer.Limits{Messages: killInFlight},
	})
	if err != nil {
		t.Fatal(err)
	}

	r.OnEvent(func(e actors.Event) {
		if c, ok := e.(*actors.Committed); ok {
			_ = books.add(fmt.Sprintf("C %s %d", c.Queue, c.Next)) // the next write of the sink says it too
		}
	})

	fmt.Println("runs") //nolint:forbidigo // the other process reads it

	if os.Getenv(killLast) != "" {
		untilDone(ctx, t, broker)
		deadLetters(ctx, t, broker, books)
	} else {
		produce(ctx, t, broker, books, life)
	}

	if report := r.Drain(0); !report.Clean {
		t.Fatalf("not clean: %+v", report)
	}

	if err := books.add("clean"); err != nil {
		t.Fatal(err)
	}
}

// produce publishes until ctx ends, and notes what the broker has acknowledged.
func produce(ctx context.Context, t *testing.T, broker *embedded.Broker, books *ledger, life string) {
	t.Helper()

	const batch = 10

	for n := 0; ; n += batch {
		var (
			messages []*pipeline.Message
			lines    []string
		)

		for i := range batch {
			id := fmt.Sprintf("%s-%d", life, n+i)
			messages = append(messages, &pipeline.Message{ID: id, Body: []byte(id)})
			lines = append(lines, "P "+id)
		}

		if err := broker.Publish(context.WithoutCancel(ctx), "in", messages); err != nil {
			t.Fatal(err)
		}

		if err := books.add(lines...); err != nil {
			t.Fatal(err)
		}

		select {
		case <-ctx.Done():
			return
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// untilDone waits until the group has read everything.
func untilDone(ctx context.Context, t *testing.T, broker *embedded.Broker) {
	t.Helper()

	for {
		d, err := broker.Describe(ctx)
		if err != nil {
			t.Fatal(err)
		}

		lag := d.Delayed

		for _, g := range d.Groups {
			if g.Name == "job" {
				for _, o := range g.Offsets {
					lag += o.Lag
				}
			}
		}

		if lag == 0 {
			return
		}

		select {
		case <-ctx.Done():
			t.Fatal(ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// deadLetters notes every dead letter.
func deadLetters(ctx context.Context, t *testing.T, broker *embedded.Broker, books *ledger) {
	t.Helper()

	ctx, stop := context.WithCancel(ctx)
	defer stop()

	j := pipeline.Job{
		Name: "dead", Source: pipeline.Source{Topics: []string{consumer.DeadLetterTopic("job")}},
		Channels: []pipeline.Channel{{Name: "note", Sink: pipeline.SinkFunc(
			func(_ context.Context, batch []*pipeline.Message) error { return books.write("D", batch) },
		)}},
	}

	go func() {
		defer stop()

		for {
			d, err := broker.Describe(ctx)
			if err != nil {
				return
			}

			for _, g := range d.Groups {
				if g.Name == "dead" && slicesSum(g.Offsets) == 0 && len(g.Offsets) > 0 {
					return
				}
			}

			select {
			case <-ctx.Done():
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()

	if err := actors.Run(ctx, j, broker, actors.Options{CommitEvery: 50 * time.Millisecond}); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

// slicesSum is the lag of all offsets of one group.
func slicesSum(offsets []embedded.GroupOffset) int64 {
	var lag int64
	for _, o := range offsets {
		lag += o.Lag
	}

	return lag
}
