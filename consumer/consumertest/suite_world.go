package consumertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// world is what a subtest of the suite works with: a broker, a topic and a group of its own.
type world struct {
	*testing.T

	harness  Harness
	features Features
	topic    string
	group    string
}

func newWorld(t *testing.T, h Harness, f Features) *world {
	t.Helper()

	f.Delay = cmp.Or(f.Delay, 200*time.Millisecond)
	f.Moment = cmp.Or(f.Moment, 50*time.Millisecond)
	f.Patience = cmp.Or(f.Patience, 30*time.Second)

	name := fmt.Sprintf("%012x", rand.Uint64()>>16) // never used before, also where brokers outlive the tests

	return &world{T: t, harness: h, features: f, topic: "topic-" + name, group: "group-" + name}
}

// within returns a context for something that must happen in time.
func (w *world) within() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.Context(), w.features.Patience)
}

// moment returns a context that ends after a moment, for something that must not happen.
func (w *world) moment() (context.Context, context.CancelFunc) {
	return context.WithTimeout(w.Context(), w.features.Moment)
}

// queues creates the topic.
func (w *world) queues(n int) {
	w.Helper()
	w.harness.CreateTopic(w.T, w.topic, n)
}

// reopen ends the broker and opens it again.
func (w *world) reopen() {
	w.Helper()

	w.harness.Bus = w.harness.Reopen(w.T)
}

// publish publishes messages without a key.
func (w *world) publish(bodies ...string) {
	w.Helper()

	messages := make([]*pipeline.Message, len(bodies))
	for i, body := range bodies {
		messages[i] = &pipeline.Message{Body: []byte(body)}
	}

	w.send(messages...)
}

func (w *world) send(messages ...*pipeline.Message) {
	w.Helper()

	ctx, cancel := w.within()
	defer cancel()

	if err := w.harness.Bus.Publish(ctx, w.topic, messages); err != nil {
		w.Fatalf("publish: %v", err)
	}
}

// join makes a member that leaves at the end of the test.
func (w *world) join(instance string) *participant {
	w.Helper()

	return w.subscribe(consumer.Subscription{Group: w.group, Topics: []string{w.topic}, Instance: instance})
}

func (w *world) subscribe(s consumer.Subscription) *participant {
	w.Helper()

	ctx, cancel := w.within()
	defer cancel()

	m, err := w.harness.Bus.Join(ctx, s)
	if err != nil {
		w.Fatalf("join: %v", err)
	}

	p := &participant{world: w, Member: m, topic: s.Topics[0]}
	w.Cleanup(p.leave)

	return p
}

// participant is a member with its last assignment.
type participant struct {
	*world
	consumer.Member

	topic    string
	assigned consumer.Assignment
	left     bool
}

func (p *participant) leave() {
	if p.left {
		return
	}

	p.left = true

	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.Context()), p.features.Patience)
	defer cancel()

	if err := p.Leave(ctx); err != nil {
		p.Errorf("leave: %v", err)
	}
}

// await waits for an assignment that pleases.
func (p *participant) await(what string, pleases func(consumer.Assignment) bool) {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	for p.assigned.Generation == 0 || !pleases(p.assigned) {
		a, err := p.Assigned(ctx, p.assigned.Generation)
		if err != nil {
			p.Fatalf("waiting to be assigned %s, with %v: %v", what, p.assigned.Leases, err)
		}

		if a.Generation <= p.assigned.Generation {
			p.Fatalf("generation %d after %d", a.Generation, p.assigned.Generation)
		}

		if !slices.IsSortedFunc(a.Leases, func(a, b consumer.Lease) int {
			return consumer.CompareQueues(a.Queue, b.Queue)
		}) {
			p.Fatalf("the leases are not sorted: %v", a.Leases)
		}

		p.assigned = a
	}
}

// awaitQueues waits until the member owns n queues of its topic, and returns their leases.
func (p *participant) awaitQueues(n int) []consumer.Lease {
	p.Helper()
	p.await(fmt.Sprintf("%d queues", n), func(a consumer.Assignment) bool { return len(leasesOf(a, p.topic)) == n })

	return leasesOf(p.assigned, p.topic)
}

// awaitOne waits until the member owns the one queue of its topic.
func (p *participant) awaitOne() consumer.Lease {
	p.Helper()

	return p.awaitQueues(1)[0]
}

// leasesOf returns the leases of one topic's queues.
func leasesOf(a consumer.Assignment, topic string) []consumer.Lease {
	return slices.DeleteFunc(slices.Clone(a.Leases), func(l consumer.Lease) bool { return l.Queue.Topic != topic })
}

func queuesOf(leases []consumer.Lease) []pipeline.Queue {
	queues := make([]pipeline.Queue, len(leases))
	for i, l := range leases {
		queues[i] = l.Queue
	}

	return queues
}

// pull pulls once; an error fails the test.
func (p *participant) pull(l consumer.Lease, from pipeline.Offset, limit consumer.Limit) consumer.Batch {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	batch, err := p.Pull(ctx, l, from, limit)
	if err != nil {
		p.Fatalf("pull of %s from %d: %v", l.Queue, from, err)
	}

	return batch
}

// plenty is a limit that is never reached.
const plenty = 1 << 30

// prop is a property of the suite's messages, before its value until a test spoils it.
const (
	prop   = "colour"
	before = "blue"
)

// collect pulls from an offset on until n messages have come, and returns them and where to pull next.
func (p *participant) collect(l consumer.Lease, from pipeline.Offset, n int) ([]*pipeline.Message, pipeline.Offset) {
	p.Helper()

	deadline := time.Now().Add(p.features.Patience)

	var got []*pipeline.Message

	for len(got) < n && time.Now().Before(deadline) {
		batch := p.pull(l, from, consumer.Limit{Messages: n - len(got), Bytes: plenty})
		got = append(got, batch.Messages...)
		from = batch.Next
	}

	if len(got) != n {
		p.Fatalf("%d messages in %s, want %d", len(got), l.Queue, n)
	}

	return got, from
}

// first returns the first offset of a queue.
func (p *participant) first(l consumer.Lease) pipeline.Offset {
	p.Helper()

	return p.find(l, pipeline.First)
}

func (p *participant) find(l consumer.Lease, at pipeline.Start) pipeline.Offset {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	o, err := p.Find(ctx, l.Queue, at)
	if err != nil {
		p.Fatalf("find %s in %s: %v", at, l.Queue, err)
	}

	return o
}

// quiet checks that nothing comes from an offset on for a moment. It also lets that much time pass.
func (p *participant) quiet(l consumer.Lease, from pipeline.Offset) {
	p.Helper()

	ctx, cancel := p.moment()
	defer cancel()

	for {
		batch, err := p.Pull(ctx, l, from, consumer.Limit{Messages: 1, Bytes: plenty})
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}

		if err != nil || len(batch.Messages) > 0 {
			p.Fatalf("pull of %s from %d, where nothing should be: %v, %v", l.Queue, from, texts(batch.Messages), err)
		}

		from = batch.Next
	}
}

func (p *participant) commit(l consumer.Lease, c consumer.Checkpoint) {
	p.Helper()

	if err := p.tryCommit(l, c); err != nil {
		p.Fatalf("commit of %v for %s: %v", c, l.Queue, err)
	}
}

func (p *participant) tryCommit(l consumer.Lease, c consumer.Checkpoint) error {
	ctx, cancel := p.within()
	defer cancel()

	return p.Commit(ctx, l, c)
}

// wantStored checks what is stored for a queue.
func (p *participant) wantStored(q pipeline.Queue, want consumer.Checkpoint) {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	got, err := p.Stored(ctx, q)
	if err != nil {
		p.Fatalf("stored of %s: %v", q, err)
	}

	if got.Next != want.Next || !slices.Equal(got.Done, want.Done) {
		p.Fatalf("stored of %s: %v, want %v", q, got, want)
	}
}

func (p *participant) wantNothingStored(q pipeline.Queue) {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	if c, err := p.Stored(ctx, q); !errors.Is(err, consumer.ErrNoCheckpoint) {
		p.Fatalf("stored of %s: %v, %v, want ErrNoCheckpoint", q, c, err)
	}
}

// release gives up a lease.
func (p *participant) release(l consumer.Lease) {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	if err := p.Release(ctx, l); err != nil {
		p.Fatalf("release of %s: %v", l.Queue, err)
	}
}

// texts returns the bodies of messages.
func texts(messages []*pipeline.Message) []string {
	bodies := make([]string, len(messages))
	for i, m := range messages {
		bodies[i] = string(m.Body)
	}

	return bodies
}

// numbers returns n different bodies, in order.
func numbers(n int) []string {
	bodies := make([]string, n)
	for i := range bodies {
		bodies[i] = fmt.Sprintf("%04d", i)
	}

	return bodies
}
