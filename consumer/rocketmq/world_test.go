package rocketmq_test

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

const (
	group = "G"
	topic = "T"
)

// world is a fake cluster with a topic of one queue, and a broker that reads it, in a bubble of virtual time.
type world struct {
	*testing.T
	*bus

	fake *rocketmqfake.Cluster
	logs *observer.ObservedLogs
	// options are those of the bus, for more clients like it.
	options rocketmq.Options
}

func inBubble(t *testing.T, fakes rocketmqfake.Options, o rocketmq.Options, test func(w *world)) {
	t.Helper()

	synctest.Test(t, func(t *testing.T) {
		// Protoactor counts undeliverable messages of jobs on a goroutine that lives for a second.
		t.Cleanup(func() { <-time.After(5 * time.Second) })

		fakes.DelayLevels = shortLevels()

		fake, err := rocketmqfake.New(fakes)
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(fake.Close)
		fake.CreateTopic(topic, 1)

		core, logs := observer.New(zapcore.InfoLevel)
		o.NameServers, o.Dial, o.DelayLevels = []string{fake.NameServer}, fake.Dial, shortLevels()
		o.OffsetDir, o.Log = t.TempDir(), zap.New(core)

		test(&world{T: t, bus: openBus(t, o), fake: fake, logs: logs, options: o})
	})
}

// ask makes a call to the first broker, whatever it answers.
func (w *world) ask(code int, ext map[string]string) map[string]string {
	w.Helper()

	fields := map[string]string{"bname": "b0", "topic": topic, "queueId": "0", "consumerGroup": group, "group": group}
	maps.Copy(fields, ext)

	answer, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{Code: code, Ext: fields})
	if err != nil {
		w.Fatal(err)
	}

	return answer.Ext
}

// storedOffset is what the broker has of the group's offset.
func (w *world) storedOffset() string {
	w.Helper()

	return w.ask(remoting.QueryConsumerOffset, map[string]string{"setZeroIfNotFound": "true"})["offset"]
}

// reset sets the group's offset as an administrator does.
func (w *world) reset(offset string) {
	w.Helper()
	w.ask(remoting.ResetOffset, map[string]string{"timestamp": "-1", "isForce": "true", "offset": offset})
}

func (w *world) publish(bodies ...string) {
	w.Helper()

	for _, body := range bodies {
		if err := w.Publish(w.Context(), topic, []*pipeline.Message{{Body: []byte(body)}}); err != nil {
			w.Fatal(err)
		}
	}
}

// reader is a member that owns a queue.
type reader struct {
	*world
	consumer.Member

	assigned consumer.Assignment
}

func (w *world) join(s consumer.Subscription) *reader {
	w.Helper()

	s.Group, s.Topics = group, []string{topic}

	m, err := w.Join(w.Context(), s)
	if err != nil {
		w.Fatal(err)
	}

	return &reader{world: w, Member: m}
}

// first is the topic's first queue, retries the group's retry queue.
func first() pipeline.Queue { return pipeline.Queue{Topic: topic, Broker: "b0"} }

func retries() pipeline.Queue { return pipeline.Queue{Topic: consumer.RetryTopic(group), Broker: "b0"} }

// owned waits until the member owns a queue, and returns its lease.
func (r *reader) owned(q pipeline.Queue) consumer.Lease {
	r.Helper()

	for {
		if i := slices.IndexFunc(r.assigned.Leases, func(l consumer.Lease) bool { return l.Queue == q }); i >= 0 {
			return r.assigned.Leases[i]
		}

		r.next()
	}
}

// next waits for the next assignment.
func (r *reader) next() {
	r.Helper()

	ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
	defer cancel()

	a, err := r.Assigned(ctx, r.assigned.Generation)
	if err != nil {
		r.Fatalf("waiting for an assignment: %v", err)
	}

	r.assigned = a
}

func some() consumer.Limit { return consumer.Limit{Messages: 32, Bytes: 1 << 20} }

// take pulls until there are messages, or the end; an error fails the test.
func (r *reader) take(l consumer.Lease, from pipeline.Offset) consumer.Batch {
	r.Helper()

	for {
		b, err := r.Pull(r.Context(), l, from, some())
		if err != nil {
			r.Fatal(err)
		}

		if len(b.Messages) > 0 || b.Next == b.End && b.Next > from {
			return b
		}

		from = b.Next
	}
}

// keeps checks that the assignment does not change for a while.
func (r *reader) keeps(d time.Duration) {
	r.Helper()

	ctx, cancel := context.WithTimeout(r.Context(), d)
	defer cancel()

	if a, err := r.Assigned(ctx, r.assigned.Generation); err == nil {
		r.Errorf("the assignment became %v", a.Leases)
	}
}

func bodies(b consumer.Batch) []string {
	var all []string
	for _, m := range b.Messages {
		all = append(all, string(m.Body))
	}

	return all
}

// members are the ids of the group's members.
func (w *world) members() []string {
	w.Helper()

	answer, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
		Code: remoting.GetConsumerList, Ext: map[string]string{"consumerGroup": group},
	})
	if err != nil {
		w.Fatal(err)
	}

	var list struct {
		IDs []string `json:"consumerIdList"`
	}

	if err := json.Unmarshal(answer.Body, &list); err != nil {
		w.Fatal(err)
	}

	return list.IDs
}
