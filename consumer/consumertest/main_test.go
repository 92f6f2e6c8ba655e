package consumertest_test

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	topic = "topic"
	group = "group"
)

// bundle is a broker with one topic of one queue.
type bundle struct {
	*testing.T
	*consumertest.Broker
}

// inBubble runs a test in virtual time, with a fresh broker that has the topic.
func inBubble(t *testing.T, cfg consumertest.Config, queues int, test func(*bundle)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t, consumertest.NewBroker(cfg)}
		b.CreateTopic(topic, queues)
		t.Cleanup(b.Close)
		test(b)
	})
}

func (b *bundle) ctx() context.Context { return b.Context() }

// publish publishes n messages with the bodies and ids 0 to n-1, one by one.
func (b *bundle) publish(n int) {
	b.Helper()

	for i := range n {
		text := strconv.Itoa(i)
		if err := b.Publish(b.ctx(), topic, []*pipeline.Message{{ID: text, Body: []byte(text)}}); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *bundle) join(instance string) consumer.Member {
	b.Helper()

	m, err := b.Join(b.ctx(), consumer.Subscription{Group: group, Topics: []string{topic}, Instance: instance})
	if err != nil {
		b.Fatal(err)
	}

	return m
}

// leases returns what a member owns now of the topic; the known generation has been seen.
func (b *bundle) leases(m consumer.Member, known uint64) ([]consumer.Lease, uint64) {
	b.Helper()

	a, err := m.Assigned(b.ctx(), known)
	if err != nil {
		b.Fatal(err)
	}

	var leases []consumer.Lease

	for _, l := range a.Leases {
		if l.Queue.Topic == topic {
			leases = append(leases, l)
		}
	}

	return leases, a.Generation
}

// only returns the one lease that a new member has of the topic.
func (b *bundle) only(m consumer.Member) consumer.Lease {
	b.Helper()

	leases, _ := b.leases(m, 0)
	if len(leases) != 1 {
		b.Fatalf("leases %v, want one", leases)
	}

	return leases[0]
}

func (b *bundle) pull(m consumer.Member, l consumer.Lease, from pipeline.Offset) (consumer.Batch, error) {
	return m.Pull(b.ctx(), l, from, consumer.Limit{Messages: 1000, Bytes: 1 << 20})
}

// all pulls from an offset on up to the end.
func (b *bundle) all(m consumer.Member, l consumer.Lease, from pipeline.Offset) []*pipeline.Message {
	b.Helper()

	batch, err := b.pull(m, l, from)
	if err != nil {
		b.Fatal(err)
	}

	return batch.Messages
}
