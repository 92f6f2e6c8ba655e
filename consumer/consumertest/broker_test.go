package consumertest_test

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func newInMemory(t *testing.T) consumertest.Harness {
	t.Helper()

	b := consumertest.NewBroker(consumertest.Config{})
	t.Cleanup(b.Close)

	return consumertest.Harness{
		Bus:         b,
		CreateTopic: func(_ *testing.T, topic string, queues int) { b.CreateTopic(topic, queues) },
	}
}

func features() consumertest.Features {
	return consumertest.Features{
		DenseOffsets:         true,
		HoldsBackQueues:      true,
		RedeliveryIdempotent: true,
		ReturnedIsFinished:   true,
		TellsReturnedPlace:   true,
	}
}

func TestBrokerKeepsTheContract(t *testing.T) {
	t.Parallel()

	f := features()
	f.VirtualTime = true
	consumertest.Run(t, newInMemory, f)
}

// Whoever stands around the calls of members and does nothing changes nothing.
func TestWatchedBrokerKeepsTheContract(t *testing.T) {
	t.Parallel()

	f := features()
	f.VirtualTime = true
	consumertest.Run(t, func(t *testing.T) consumertest.Harness {
		t.Helper()

		h := newInMemory(t)
		h.Bus = watchedBus{Broker: idle().Broker(h.Bus), Publisher: h.Bus}

		return h
	}, f)
}

type watchedBus struct {
	consumer.Broker
	consumer.Publisher
}

// idle makes each call once, as it is.
func idle() *consumertest.Around {
	return &consumertest.Around{
		Join: func(call func() (consumer.Member, error)) (consumer.Member, error) { return call() },
		Pull: func(_ consumer.Lease, call func() (consumer.Batch, error)) (consumer.Batch, error) { return call() },
		Stored: func(_ pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error) {
			return call()
		},
		Commit: func(_ consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
			return call(c)
		},
		SendBack: func(m *pipeline.Message, _ time.Duration, call func(*pipeline.Message) error) error {
			return call(m)
		},
		DeadLetter: func(m *pipeline.Message, _ consumer.Cause, call func(*pipeline.Message) error) error {
			return call(m)
		},
		Release: func(ctx context.Context, m consumer.Member, l consumer.Lease) error { return m.Release(ctx, l) },
	}
}

// The suite must work for brokers that need real time.
func TestBrokerKeepsTheContractInRealTime(t *testing.T) {
	t.Parallel()

	consumertest.Run(t, newInMemory, features())
}
