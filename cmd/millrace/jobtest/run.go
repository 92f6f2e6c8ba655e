// Package jobtest runs the tests of job files: messages go in, and what comes out of the sinks and into the dead letters is
// held against what is expected. The broker is one in memory, and sinks are replaced by ones that remember.
//
// Time is real, since stages may talk to anything. Nobody waits for it, though: delays of retries are a millisecond, batches are
// handed on as soon as nothing else is left to do, and the clock of the plugins jumps where one of them waits.
package jobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
)

// retryDelay stands for every delay of a job's retries.
const retryDelay = time.Millisecond

// Problem is one way in which a job did not do what was expected.
type Problem struct {
	// Place is where the expectation stands, or the test where none does.
	jobfile.Place

	// Lines say what is wrong.
	Lines []string
}

// Run runs a case with a fresh job, and returns what is not as expected. An error means that it could not be found out.
func Run(ctx context.Context, job *jobfile.Job, c jobfile.Case, log *zap.Logger) ([]Problem, error) {
	w, err := newWorld(ctx, job, c, log)
	if err != nil {
		return nil, err
	}
	defer w.broker.Close()

	for w.starts = 1; ; w.starts++ {
		settled, err := w.start(ctx)
		if err != nil {
			return nil, err
		}

		if settled {
			return w.judge(), nil
		}
	}
}

// world is what a case runs in.
type world struct {
	job    *jobfile.Job
	c      jobfile.Case
	log    *zap.Logger
	broker *consumertest.Broker
	clock  clock // goes on from start to start
	starts int

	mu sync.Mutex
	// got are the messages of each sink, by channel; guarded by mu.
	got map[string][]*pipeline.Message
}

func newWorld(ctx context.Context, job *jobfile.Job, c jobfile.Case, log *zap.Logger) (*world, error) {
	w := &world{
		job: job, c: c, log: log, broker: consumertest.NewBroker(consumertest.Config{}),
		got: make(map[string][]*pipeline.Message),
	}

	topics := job.Topics()
	for _, topic := range topics {
		w.broker.CreateTopic(topic, 1)
	}

	for _, m := range c.In {
		topic := m.Topic
		if topic == "" {
			topic = topics[0]
		}

		if !slices.Contains(topics, topic) {
			return nil, fmt.Errorf("the job does not read topic %q; %s", topic, pipeline.Suggest(topic, topics))
		}

		message := &pipeline.Message{ID: m.ID, Key: value(m.Key), Tag: value(m.Tag), Props: m.Props, Body: m.Body}
		if err := w.broker.Publish(ctx, topic, []*pipeline.Message{message}); err != nil {
			return nil, fmt.Errorf("jobtest: %w", err)
		}
	}

	return w, nil
}

func value(text *string) string {
	if text == nil {
		return ""
	}

	return *text
}

// start runs the job until nothing moves, and drains it, which hands on what waits in batches. It returns whether nothing
// is left to do: what was sent back meanwhile takes another start.
func (w *world) start(ctx context.Context) (settled bool, err error) {
	job, err := w.job.BuildWith(plugins.Env{Log: w.log, Publisher: w.broker, Clock: &w.clock}, w.record)
	if err != nil {
		return false, err
	}

	job.Source.Start = pipeline.First
	job.Retry.Delays = []time.Duration{retryDelay}

	running, err := actors.Start(job, w.broker, actors.Options{Instance: "test", Logger: w.log})
	if err != nil {
		return false, err
	}

	quiet := w.awaitQuiet(ctx, running)

	budget := time.Duration(0)
	if quiet != nil {
		budget = -1
	}

	report := running.Drain(budget)

	switch {
	case quiet != nil:
		return false, quiet
	case report.Err != nil:
		return false, report.Err
	case report.UnfinishedCount > 0:
		return false, &actors.UnfinishedError{Report: report}
	default:
		return w.workedOff(), nil
	}
}

// awaitQuiet waits until a job has pulled everything and its lanes have nothing to do but wait. It need not be exact, since
// a drain finishes what is under way, and what has not been pulled takes another start.
func (w *world) awaitQuiet(ctx context.Context, running *actors.Running) error {
	const (
		lookEvery = 2 * time.Millisecond
		looks     = 3
	)

	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()

	var before actors.TrackerCounts

	for same := 0; same < looks; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not end in time: %w", context.Cause(ctx))
		case <-running.Stopped():
			return nil // the report says why
		case <-ticker.C:
		}

		s, err := running.Snapshot(ctx)
		if errors.Is(err, actors.ErrStopped) {
			return nil
		}

		if err != nil {
			return err
		}

		if s.Counts == before && w.idle(s) {
			same++
		} else {
			same = 0
		}

		before = s.Counts
	}

	return nil
}

// idle reports whether nothing moves in a job.
func (w *world) idle(s *actors.Snapshot) bool {
	if s.State != "running" || w.broker.Delayed(w.job.Group()) > 0 || len(s.Queues) == 0 {
		return false
	}

	for i := range s.Queues {
		if q := &s.Queues[i]; q.Waits == "its start" || q.Next < w.end(q.Queue) {
			return false
		}
	}

	for i := range s.Channels {
		if s.Channels[i].Waiting > 0 {
			return false
		}

		for _, lane := range s.Channels[i].Lanes {
			if lane.Stage != "" || lane.Parked > 0 {
				return false
			}
		}
	}

	return true
}

func (w *world) end(queue pipeline.Queue) pipeline.Offset {
	for _, standing := range w.broker.Standings(w.job.Group(), queue.Topic) {
		if standing.Queue == queue {
			return standing.End
		}
	}

	return 0
}

// workedOff reports whether the job's group has finished everything.
func (w *world) workedOff() bool {
	if w.broker.Delayed(w.job.Group()) > 0 {
		return false
	}

	for _, topic := range append(slices.Clone(w.job.Topics()), consumer.RetryTopic(w.job.Group())) {
		for _, s := range w.broker.Standings(w.job.Group(), topic) {
			if s.Checkpoint.Next < s.End && !w.job.Broadcast() {
				return false
			}
		}
	}

	return true
}

// record returns a sink that remembers, in place of one of the job's. What a redelivered message brings once more is no
// second output.
func (w *world) record(use jobfile.SinkUse) pipeline.Sink {
	return pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		w.mu.Lock()
		defer w.mu.Unlock()

		for _, m := range batch {
			again := m.Origin.Delivery > 1 && slices.ContainsFunc(w.got[use.Channel], func(old *pipeline.Message) bool {
				return old.ID == m.ID && old.Key == m.Key && old.Tag == m.Tag && bytes.Equal(old.Body, m.Body)
			})
			if !again {
				w.got[use.Channel] = append(w.got[use.Channel], m.Clone())
			}
		}

		return nil
	})
}
