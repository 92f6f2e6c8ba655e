package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/pipeline"
)

// What tells a process of this test binary that it is one of the members of TestKilledMembersLoseNothing; with a volume it is
// a broadcasting one of aKeptVolumeRepeatsNothing, and reads its topic.
const (
	sceneServer = "MILLRACE_SCENE_SERVER"
	sceneLedger = "MILLRACE_SCENE_LEDGER"
	sceneVolume = "MILLRACE_SCENE_VOLUME"
	// sceneOrderly has it lock its queues.
	sceneOrderly = "MILLRACE_SCENE_ORDERLY"
)

const (
	sceneGroup    = "scene"
	sceneTopic    = "scenes"
	sceneInFlight = 64
	volumeName    = "act-volume" // the topic and the group of who has a volume
)

// sceneBook is a file in which each line says when something was done, in milliseconds, and ends in " ." so that a torn one
// is told from a whole one.
type sceneBook struct {
	mu   sync.Mutex
	file *os.File
}

func (b *sceneBook) note(format string, args ...any) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	_, err := fmt.Fprintf(b.file, strconv.FormatInt(time.Now().UnixMilli(), 10)+" "+format+" .\n", args...)

	return err
}

// Write notes each message with its place.
func (b *sceneBook) Write(_ context.Context, batch []*pipeline.Message) error {
	for _, m := range batch {
		if err := b.note("W %s %s %d", m.Body, m.Origin.Queue, m.Origin.Offset); err != nil {
			return err
		}
	}

	return nil
}

// event notes what the bounds of repeats are made of, and tells the parent who owns what.
func (b *sceneBook) event(e actors.Event) {
	switch e := e.(type) {
	case *actors.Committed:
		_ = b.note("C %s", e.Queue) // the next write of the sink says it too
	case *actors.MessageDead:
		_ = b.note("D %s %s %d", e.MessageID, e.Queue, e.Offset)
	case *actors.MessageDropped:
		_ = b.note("D %s %s %d", e.MessageID, e.Queue, e.Offset)
	case *actors.QueueAssigned:
		fmt.Println("A", e.Queue) //nolint:forbidigo // the parent reads it
	case *actors.QueueRevoked:
		fmt.Println("V", e.Queue) //nolint:forbidigo // as above
	}
}

// sceneJob fails some messages once and some for good.
func sceneJob(sink pipeline.Sink) pipeline.Job {
	trouble := pipeline.Func("trouble", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		switch n := sceneNumber(string(m.Body)) % 50; {
		case n == 3:
			return pipeline.Reject(errors.New("unlucky"))
		case n == 23 && m.Origin.Delivery == 1:
			return errors.New("not yet")
		default:
			return emit(m)
		}
	})

	return pipeline.Job{
		Name: sceneGroup, Source: pipeline.Source{Topics: []string{sceneTopic}},
		Retry:    pipeline.RetryPolicy{Attempts: 3, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{{Name: "work", Lanes: 2, Stages: []pipeline.Stage{trouble}, Sink: sink}},
	}
}

// sceneNumber returns the number at the end of a body.
func sceneNumber(body string) int {
	n, _ := strconv.Atoi(body[strings.LastIndexByte(body, '-')+1:])

	return n
}

// TestSceneChild is not a test of its own: it is one member of TestKilledMembersLoseNothing, in a process of its own.
func TestSceneChild(t *testing.T) {
	t.Parallel()

	server := os.Getenv(sceneServer)
	if server == "" {
		t.Skip("it is run by TestKilledMembersLoseNothing")
	}

	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()

	volume := os.Getenv(sceneVolume)

	file, err := os.OpenFile(os.Getenv(sceneLedger), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()

	book := &sceneBook{file: file}

	broker, err := rocketmq.Open(rocketmq.Options{
		NameServers: []string{server}, DelayLevels: realLevels(), DialTimeout: loaded, OffsetDir: volume,
		Orderly: os.Getenv(sceneOrderly) != "",
	})
	if err != nil {
		t.Fatal(err)
	}

	defer func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	}()

	job, o := sceneJob(book), actors.Options{
		CommitEvery: 100 * time.Millisecond, Limits: consumer.Limits{Messages: sceneInFlight}, ReturnBackoff: time.Second,
	}

	if volume != "" {
		job.Name, job.Source = volumeName, pipeline.Source{Topics: []string{volumeName}, Broadcast: true}
		o.Instance, o.Limits.Messages = "kept", 4

		host, _ := os.Hostname()
		_ = book.note("H %s", host)
	}

	r, err := actors.Start(job, broker, o)
	if err != nil {
		t.Fatal(err)
	}

	r.OnEvent(book.event)

	select {
	case <-ctx.Done():
	case <-r.Stopped():
	}

	if report := r.Drain(loaded); !report.Clean {
		t.Fatalf("not clean: %+v", report)
	}
}
