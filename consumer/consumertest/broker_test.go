package consumertest_test

import (
	"testing"

	"github.com/millrace/millrace/consumer/consumertest"
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

// The suite must work for brokers that need real time.
func TestBrokerKeepsTheContractInRealTime(t *testing.T) {
	t.Parallel()

	consumertest.Run(t, newInMemory, features())
}
