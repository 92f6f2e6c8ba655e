package rocketmq_test

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/pipeline"
)

// loaded is how long calls may take on a loaded machine.
const loaded = 15 * time.Second

// realLevels are the delays that rocketmqtest gives its brokers.
func realLevels() (levels []time.Duration) {
	for seconds := range 6 {
		for range 3 {
			levels = append(levels, time.Duration(seconds+1)*time.Second)
		}
	}

	return levels
}

// realBus waits until what it did can be seen: real brokers and name servers answer before that.
type realBus struct{ *bus }

// Join waits for topics that were made just now.
func (b realBus) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	patience := time.After(5 * time.Second)

	for {
		m, err := b.bus.Join(ctx, s)
		if _, unknown := errors.AsType[*consumer.UnknownTopicError](err); !unknown {
			return m, err
		}

		select {
		case <-patience:
			return m, err
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Publish waits until the messages are in their queues.
func (b realBus) Publish(ctx context.Context, topic string, messages []*pipeline.Message) error {
	if err := b.bus.Publish(ctx, topic, messages); err != nil {
		return err
	}

	return b.settled(ctx)
}

func createTopic(t *testing.T, cluster *rocketmqtest.Cluster, b *bus, topic string, queues int) {
	t.Helper()

	n := strconv.Itoa(queues)

	for _, broker := range cluster.Brokers {
		if _, err := b.client.Call(t.Context(), broker.Addr, &remoting.Command{Code: remoting.UpdateTopic, Ext: map[string]string{
			"topic": b.space.Wrap(topic), "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n, "perm": "6",
			"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
		}}); err != nil {
			t.Fatal(err)
		}
	}

	for deadline := time.Now().Add(10 * time.Second); ; <-time.After(20 * time.Millisecond) {
		if found, err := b.table.Refresh(t.Context(), topic); err == nil && len(found.Masters()) == len(cluster.Brokers) {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func realSuite(t *testing.T, cluster *rocketmqtest.Cluster, o rocketmq.Options, f consumertest.Features) {
	t.Helper()

	o.NameServers, o.DelayLevels = []string{cluster.NameServer}, realLevels()
	o.CallTimeout, o.DialTimeout = loaded, loaded
	f.DenseOffsets, f.Delay, f.Moment, f.Patience = true, time.Second, 200*time.Millisecond, time.Minute

	consumertest.Run(t, func(t *testing.T) consumertest.Harness {
		t.Helper()

		o := o
		o.OffsetDir = t.TempDir()
		b := openBus(t, o)

		return consumertest.Harness{
			Bus: realBus{b},
			CreateTopic: func(t *testing.T, topic string, queues int) {
				t.Helper()
				createTopic(t, cluster, b, topic, queues)
			},
		}
	}, f)
}

func TestRealBrokers(t *testing.T) {
	t.Parallel()

	for _, version := range rocketmqtest.Versions() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()

			cluster := rocketmqtest.Start(t, rocketmqtest.Options{Version: version})

			t.Run("concurrent", func(t *testing.T) {
				t.Parallel()
				realSuite(t, cluster, rocketmq.Options{}, consumertest.Features{})
			})
			t.Run("resets", func(t *testing.T) {
				t.Parallel()
				realReset(t, cluster)
			})
			t.Run("others", func(t *testing.T) {
				t.Parallel()
				realMistakes(t, cluster, version == rocketmqtest.Versions()[0])
			})
			t.Run("orderly", func(t *testing.T) {
				t.Parallel()
				realSuite(t, cluster, rocketmq.Options{Orderly: true}, consumertest.Features{HoldsBackQueues: true})
			})
		})
	}
}

// realReset resets a group's offset as administrators do, which version 4 tells the members and version 5 their next pull.
func realReset(t *testing.T, cluster *rocketmqtest.Cluster) {
	t.Helper()

	const n = 5

	b := openBus(t, rocketmq.Options{NameServers: []string{cluster.NameServer}, HoldPull: time.Second, CallTimeout: loaded, DialTimeout: loaded})
	createTopic(t, cluster, b, "resets", 1)

	for range n {
		if err := (realBus{b}).Publish(t.Context(), "resets", []*pipeline.Message{{Body: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
	}

	m, err := b.Join(t.Context(), consumer.Subscription{Group: "resetters", Topics: []string{"resets"}})
	if err != nil {
		t.Fatal(err)
	}

	r := &reader{world: &world{T: t, bus: b}, Member: m}
	q := pipeline.Queue{Topic: "resets", Broker: "b0"}
	before := r.owned(q)

	for _, c := range []consumer.Checkpoint{{Next: 0, Done: []consumer.Run{{From: 3, To: 4}}}, {Next: n}} {
		if err := m.Commit(t.Context(), before, c); err != nil {
			t.Fatal(err)
		}
	}

	cluster.Admin(t, "resetOffsetByTime", "-g", "resetters", "-t", "resets", "-s", "1000")

	for err = nil; err == nil; {
		_, err = m.Pull(t.Context(), before, n, some())
	}

	if !errors.Is(err, consumer.ErrNotOwner) {
		t.Fatal(err)
	}

	for r.owned(q) == before {
		r.next()
	}

	c, err := m.Stored(t.Context(), q)
	if err != nil || c.Next != 0 || len(c.Done) > 0 {
		t.Fatalf("stored is %v, %v", c, err)
	}

	if got := r.take(r.owned(q), 0); len(got.Messages) != n {
		t.Errorf("from the reset on came %d messages", len(got.Messages))
	}

	if err := m.Commit(t.Context(), r.owned(q), consumer.Checkpoint{Next: 2}); err != nil {
		t.Error(err)
	}

	if c, err := m.Stored(t.Context(), q); err != nil || c.Next != 2 {
		t.Errorf("stored is %v, %v", c, err)
	}
}
