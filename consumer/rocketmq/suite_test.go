package rocketmq_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

// shortLevels are delays that tests can wait for.
func shortLevels() []time.Duration {
	return []time.Duration{200 * time.Millisecond, time.Second, 2 * time.Second}
}

// fakeSuite runs the suite against a fake cluster.
func fakeSuite(t *testing.T, o rocketmq.Options, f consumertest.Features) {
	t.Helper()

	f.VirtualTime, f.DenseOffsets = true, true

	consumertest.Run(t, func(t *testing.T) consumertest.Harness {
		t.Helper()

		fake, err := rocketmqfake.New(rocketmqfake.Options{DelayLevels: shortLevels()})
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(fake.Close)

		o := o
		o.NameServers, o.Dial, o.DelayLevels, o.OffsetDir = []string{fake.NameServer}, fake.Dial, shortLevels(), t.TempDir()

		b := openBus(t, o)

		return consumertest.Harness{
			Bus:         b,
			CreateTopic: func(_ *testing.T, topic string, queues int) { fake.CreateTopic(b.space.Wrap(topic), queues) },
		}
	}, f)
}

func TestBrokerPassesTheSuite(t *testing.T) {
	t.Parallel()
	fakeSuite(t, rocketmq.Options{}, consumertest.Features{})
}

func TestOrderlyBrokerPassesTheSuite(t *testing.T) {
	t.Parallel()
	fakeSuite(t, rocketmq.Options{Orderly: true}, consumertest.Features{HoldsBackQueues: true})
}

func TestBrokerPassesTheSuiteInANamespace(t *testing.T) {
	t.Parallel()
	fakeSuite(t, rocketmq.Options{Namespace: "ours"}, consumertest.Features{})
}
