package rocketmq_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
	"github.com/millrace/millrace/pipeline"
)

// realMistakes makes mistakes on a real cluster that only a member meets: a topic that is not there, or not any more; and a
// group whose members want different things, the other one being RocketMQ's own client where that is asked for.
func realMistakes(t *testing.T, cluster *rocketmqtest.Cluster, java bool) {
	t.Helper()

	const group, topic = "mistaken", "mixed"

	open := func(tags string) *bus {
		return openBus(t, rocketmq.Options{
			NameServers: []string{cluster.NameServer}, HoldPull: time.Second, CallTimeout: loaded, DialTimeout: loaded,
			Filters: map[string]rocketmq.Filter{topic: {Tags: tags}},
		})
	}

	b := open("a")

	_, err := b.Join(t.Context(), consumer.Subscription{Group: group, Topics: []string{"nowhere"}})
	tells(t, err, `no topic "nowhere"`, "mend the name, or create it: millrace topics create nowhere")

	createTopic(t, cluster, b, topic, 1)

	r := realReader(t, b, group, topic)
	q := pipeline.Queue{Topic: topic, Broker: "b0"}
	r.owned(q)

	var (
		other sync.WaitGroup
		leave func() error
	)

	if java { // it ends when it is given something
		other.Go(func() { cluster.Java(t, "rocketmqtest/testdata/Consume.java", group, topic, "b") })

		leave = func() error {
			return b.Publish(t.Context(), topic, []*pipeline.Message{{Tag: "b", Body: []byte("x")}})
		}
	} else {
		m := realReader(t, open("b"), group, topic)
		leave = func() error { return m.Leave(t.Context()) }
	}

	for r.assigned.Warning == "" {
		r.next()
	}

	tells(t, errors.New(r.assigned.Warning), `topic "mixed": there tags "b", here tags "a"`)

	if err := leave(); err != nil {
		t.Fatal(err)
	}

	other.Wait()

	for r.assigned.Warning != "" {
		r.next()
	}

	// One without a timer fails behind the deletion.
	if _, err := b.client.Call(t.Context(), cluster.Brokers[0].Addr, &remoting.Command{
		Code: remoting.DeleteTopic, Ext: map[string]string{"topic": topic},
	}, remoting.SystemError); err != nil {
		t.Fatal(err)
	}

	for err = nil; err == nil; {
		if _, err = r.Pull(t.Context(), r.owned(q), 0, some()); errors.Is(err, consumer.ErrNotOwner) {
			r.next()

			err = nil
		}
	}

	tells(t, err, "mixed@b0/0: pull", `no topic "mixed"`, "millrace topics create mixed")
}

func realReader(t *testing.T, b *bus, group, topic string) *reader {
	t.Helper()

	m, err := realBus{b}.Join(t.Context(), consumer.Subscription{Group: group, Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}

	return &reader{world: &world{T: t, bus: b}, Member: m}
}

func tells(t *testing.T, err error, texts ...string) {
	t.Helper()

	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("the error %v does not say %q", err, text)
		}
	}
}
