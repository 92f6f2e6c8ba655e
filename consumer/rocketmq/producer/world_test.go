package producer_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// world is a fake cluster with a producer.
type world struct {
	*rocketmqfake.Cluster

	t        *testing.T
	producer *producer.Producer
	reader   *reader
}

// setup makes a world. It is called in a bubble of synctest.
func setup(t *testing.T, cluster rocketmqfake.Options, o producer.Options) *world {
	t.Helper()

	fake, err := rocketmqfake.New(cluster)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)

	o.NameServers = []string{fake.NameServer}
	o.Remoting.Dial = fake.Dial

	return &world{
		Cluster: fake, t: t, producer: open(t, o),
		reader: newReader(t, fake.NameServer, remoting.Options{Dial: fake.Dial}),
	}
}

func open(t *testing.T, o producer.Options) *producer.Producer {
	t.Helper()

	p, err := producer.New(o)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = p.Close() })

	return p
}

// send sends what has to arrive.
func (w *world) send(topic string, m producer.Message) producer.Sent {
	w.t.Helper()

	sent, err := w.producer.Send(w.t.Context(), topic, m)
	if err != nil {
		w.t.Fatal(err)
	}

	return sent
}

// reader pulls what is stored, without a group.
type reader struct {
	t       *testing.T
	client  *remoting.Client
	table   *routes.Table
	decoder *record.Decoder
}

func newReader(t *testing.T, nameServer string, o remoting.Options) *reader {
	t.Helper()

	client := remoting.NewClient(o)
	t.Cleanup(client.Close)

	table, err := routes.New(routes.Options{Client: client, NameServers: []string{nameServer}})
	if err != nil {
		t.Fatal(err)
	}

	decoder, err := record.NewDecoder(record.Limits{})
	if err != nil {
		t.Fatal(err)
	}

	return &reader{t, client, table, decoder}
}

// queue returns what a queue holds; it waits for the first n.
func (r *reader) queue(q pipeline.Queue, n int) (all []record.Record) {
	r.t.Helper()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	addr, err := r.table.Master(ctx, q)
	if err != nil {
		r.t.Fatal(err)
	}

	for {
		hold := "0"
		if len(all) < n {
			hold = "15000"
		}

		answer, err := r.client.Call(ctx, addr, &remoting.Command{Code: remoting.PullMessage, Ext: map[string]string{
			"consumerGroup": "readers", "topic": q.Topic, "queueId": strconv.Itoa(q.ID), "bname": q.Broker,
			"queueOffset": strconv.Itoa(len(all)), "maxMsgNums": "32", "sysFlag": "6", "commitOffset": "0",
			"suspendTimeoutMillis": hold, "subscription": "*", "subVersion": "1", "expressionType": "TAG",
		}}, remoting.PullNotFound, remoting.PullRetryImmediately)
		if err != nil {
			r.t.Fatal(err)
		}

		got, _, err := r.decoder.Decode(answer.Body, int64(len(all)))
		if err != nil {
			r.t.Fatal(err)
		}

		if len(got) == 0 && len(all) >= n {
			return all
		}

		all = append(all, got...)
	}
}

// topic returns what all queues of a topic hold.
func (r *reader) topic(topic string) map[pipeline.Queue][]record.Record {
	r.t.Helper()

	route, err := r.table.Refresh(context.Background(), topic)
	if err != nil {
		r.t.Fatal(err)
	}

	all := map[pipeline.Queue][]record.Record{}
	for _, q := range route.Readable {
		all[q] = r.queue(q, 0)
	}

	return all
}

// bodies returns how often each body is stored in a topic.
func (r *reader) bodies(topic string) map[string]int {
	r.t.Helper()

	counts := map[string]int{}

	for _, records := range r.topic(topic) {
		for i := range records {
			counts[string(records[i].Body)]++
		}
	}

	return counts
}
