package admin_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/admin"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// world is a real cluster with a client.
type world struct {
	*admin.Client

	cluster *rocketmqtest.Cluster
}

func open(t *testing.T, o admin.Options) *admin.Client {
	t.Helper()

	o.Remoting.CallTimeout, o.Remoting.DialTimeout = 15*time.Second, 15*time.Second

	c, err := admin.Open(o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(c.Close)

	return c
}

func TestRealBrokersTellAndDoWhatOperatorsAsk(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})
	w := world{Client: open(t, admin.Options{NameServers: []string{cluster.NameServer}}), cluster: cluster}

	for name, test := range map[string]func(*testing.T, world){
		"topics are made and listed":                 topicsAreMade,
		"offsets are those that are stored":          offsetsAreTold,
		"a running group is reset":                   aRunningGroupIsReset,
		"a namespace sees its own":                   aNamespaceSeesItsOwn,
		"a topic that there is not names the others": aMissingTopic,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

// send publishes so many messages to the first queues of a topic, one each in turn.
func (w world) send(t *testing.T, topic string, n int) {
	t.Helper()

	p, err := producer.New(producer.Options{NameServers: []string{w.cluster.NameServer}})
	if err != nil {
		t.Fatal(err)
	}

	defer func() { _ = p.Close() }()

	for i := range n {
		if _, err := p.Send(t.Context(), topic, producer.Message{Body: []byte(strconv.Itoa(i))}); err != nil {
			t.Fatal(err)
		}
	}
}

func topicsAreMade(t *testing.T, w world) {
	t.Helper()

	if err := w.CreateTopic(t.Context(), "made", 2); err != nil {
		t.Fatal(err)
	}

	w.send(t, "made", 6)

	if err := w.CreateTopic(t.Context(), "made", 3); err != nil {
		t.Error(err)
	}

	if err := w.CreateTopic(t.Context(), "made", 3); err != nil {
		t.Errorf("making what is there: %v", err)
	}

	if err := w.CreateTopic(t.Context(), "made", 1); err == nil || !strings.Contains(err.Error(), "not taken away") {
		t.Errorf("taking queues away: %v", err)
	}

	names, err := w.Topics(t.Context())
	if err != nil || !slices.Contains(names, "made") || slices.Contains(names, "TBW102") {
		t.Errorf("topics %v, %v", names, err)
	}

	queues := w.awaitEnds(t, "made", 6)
	if len(queues) != 3 {
		t.Errorf("the queues are %v", queues)
	}
}

// awaitEnds returns the queues of a topic once so many messages are in them: brokers answer before that.
func (w world) awaitEnds(t *testing.T, topic string, messages pipeline.Offset) []admin.Queue {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()

	for {
		queues, err := w.Queues(ctx, topic)
		if err != nil {
			t.Fatal(err)
		}

		var sum pipeline.Offset
		for _, q := range queues {
			sum += q.End - q.First
		}

		if sum == messages {
			return queues
		}

		<-time.After(20 * time.Millisecond)
	}
}

// join makes a member of a group that reads a topic, and returns it with one of its leases.
func (w world) join(t *testing.T, group, topic string) (consumer.Member, consumer.Lease) {
	t.Helper()

	broker, err := rocketmq.Open(rocketmq.Options{
		NameServers: []string{w.cluster.NameServer}, CallTimeout: 15 * time.Second, DialTimeout: 15 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = broker.Close() })

	member, err := broker.Join(t.Context(), consumer.Subscription{Group: group, Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}

	return member, lease(t, member, topic, consumer.Lease{})
}

// lease waits for a lease of a topic's queue that is not the one before.
func lease(t *testing.T, m consumer.Member, topic string, before consumer.Lease) consumer.Lease {
	t.Helper()

	for known := uint64(0); ; {
		a, err := m.Assigned(t.Context(), known)
		if err != nil {
			t.Fatal(err)
		}

		for _, l := range a.Leases {
			if l.Queue.Topic == topic && l != before {
				return l
			}
		}

		known = a.Generation
	}
}

func offsetsAreTold(t *testing.T, w world) {
	t.Helper()

	if err := w.CreateTopic(t.Context(), "told", 2); err != nil {
		t.Fatal(err)
	}

	w.send(t, "told", 8)
	w.awaitEnds(t, "told", 8) // four in each queue

	unknown, err := w.Group(t.Context(), "nobody")
	if err != nil || len(unknown.Members)+len(unknown.Offsets) > 0 {
		t.Errorf("of a group that there is not: %+v, %v", unknown, err)
	}

	member, l := w.join(t, "tellers", "told")

	if g, err := w.Group(t.Context(), "tellers"); err != nil || len(g.Members) != 1 || len(g.Offsets) != 0 {
		t.Errorf("before anything is stored: %+v, %v", g, err)
	}

	for _, next := range []pipeline.Offset{0, 3} {
		if err := member.Commit(t.Context(), l, consumer.Checkpoint{Next: next}); err != nil {
			t.Fatal(err)
		}

		g, err := w.Group(t.Context(), "tellers")
		if err != nil || len(g.Offsets) != 1 || g.Offsets[0] != (admin.Progress{Queue: l.Queue, Next: next, End: 4}) {
			t.Errorf("with %d stored: %+v, %v", next, g, err)
		}
	}

	names, err := w.Groups(t.Context())
	if err != nil || !slices.Contains(names, "tellers") || slices.Contains(names, admin.ToolsGroup) {
		t.Errorf("groups %v, %v", names, err)
	}
}

func aRunningGroupIsReset(t *testing.T, w world) {
	t.Helper()

	if err := w.CreateTopic(t.Context(), "moved", 1); err != nil {
		t.Fatal(err)
	}

	w.send(t, "moved", 5)
	w.awaitEnds(t, "moved", 5)

	member, before := w.join(t, "movers", "moved")

	if err := member.Commit(t.Context(), before, consumer.Checkpoint{Next: 5}); err != nil {
		t.Fatal(err)
	}

	if err := w.Reset(t.Context(), "movers", before.Queue, 2); err != nil {
		t.Fatal(err)
	}

	// A pull meets the reset, and the queue comes back under another lease.
	if _, err := member.Pull(t.Context(), before, 4, consumer.Limit{Messages: 1, Bytes: 1}); !errors.Is(err, consumer.ErrNotOwner) {
		t.Errorf("a pull after the reset: %v", err)
	}

	after := lease(t, member, "moved", before)

	if cp, err := member.Stored(t.Context(), after.Queue); err != nil || cp.Next != 2 {
		t.Errorf("stored is %v, %v", cp, err)
	}
}

func aNamespaceSeesItsOwn(t *testing.T, w world) {
	t.Helper()

	own := open(t, admin.Options{NameServers: []string{w.cluster.NameServer}, Namespace: "ns"})

	for _, topic := range []string{"mine", "%DLQ%mine"} {
		if err := own.CreateTopic(t.Context(), topic, 1); err != nil {
			t.Fatal(err)
		}
	}

	if names, err := own.Topics(t.Context()); err != nil || !slices.Equal(names, []string{"%DLQ%mine", "mine"}) {
		t.Errorf("in the namespace there are %v, %v", names, err)
	}

	if names, err := w.Topics(t.Context()); err != nil || slices.Contains(names, "mine") || slices.Contains(names, "ns%mine") {
		t.Errorf("outside of it there are %v, %v", names, err)
	}
}

func aMissingTopic(t *testing.T, w world) {
	t.Helper()

	if err := w.CreateTopic(t.Context(), "there", 1); err != nil {
		t.Fatal(err)
	}

	_, err := w.Queues(t.Context(), "their")

	missing, ok := errors.AsType[*consumer.UnknownTopicError](err)
	if !ok || !slices.Contains(missing.Known, "there") {
		t.Errorf("asking for a topic that there is not: %v", err)
	}
}

func TestAnUnreachableClusterIsNamed(t *testing.T) {
	t.Parallel()

	c := open(t, admin.Options{
		NameServers: []string{"127.0.0.1:1"}, Remoting: remoting.Options{},
	})

	if _, err := c.Topics(t.Context()); !errors.Is(err, routes.ErrUnreachable) || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("listing topics: %v", err)
	}
}
