package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap/zaptest"

	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// collector is a sink that remembers what it was given.
type collector struct {
	mu  sync.Mutex
	ids map[string]int
}

func (c *collector) Write(_ context.Context, batch []*pipeline.Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.ids == nil {
		c.ids = make(map[string]int)
	}

	for _, m := range batch {
		c.ids[m.ID]++
	}

	return nil
}

func (c *collector) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()

	return len(c.ids)
}

func publish(t *testing.T, b *consumertest.Broker, topic string, n int) {
	t.Helper()

	messages := make([]*pipeline.Message, n)
	for i := range messages {
		messages[i] = &pipeline.Message{ID: fmt.Sprintf("m%d", i), Key: fmt.Sprintf("k%d", i%7), Body: []byte("x")}
	}

	if err := b.Publish(t.Context(), topic, messages); err != nil {
		t.Fatal(err)
	}
}

func TestEveryMessageIsFinishedAndCommitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := consumertest.NewBroker(consumertest.Config{})
		defer b.Close()

		b.CreateTopic("in", 4)
		publish(t, b, "in", 1000)

		sink := &collector{}
		r, err := Start(pipeline.Job{
			Name:   "job",
			Source: pipeline.Source{Topics: []string{"in"}},
			Channels: []pipeline.Channel{{
				Name: "work", Lanes: 2, Sink: sink,
				Stages: []pipeline.Stage{pipeline.Func("same", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
					return emit(m)
				})},
			}},
		}, b, Options{Logger: zaptest.NewLogger(t)})
		if err != nil {
			t.Fatal(err)
		}

		<-time.After(10 * time.Second)

		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		t.Logf("%+v", s)

		report := r.Drain(0)
		t.Logf("%+v", report)

		if sink.len() != 1000 || !report.Clean {
			t.Fatalf("%d of 1000 messages, report %+v", sink.len(), report)
		}
	})
}
