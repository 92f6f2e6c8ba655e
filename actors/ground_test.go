package actors_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// ground is where the black-box tests stand: a broker in memory with the topic "in", and what the jobs on it published.
type ground struct {
	*consumertest.Broker

	t       *testing.T
	mu      sync.Mutex
	events  []actors.Event
	commits []consumertest.Commit
}

// newGround makes the broker; it must be called inside of a bubble.
func newGround(t *testing.T, queues int) *ground {
	t.Helper()

	g := &ground{t: t}
	g.Broker = consumertest.NewBroker(consumertest.Config{OnCommit: func(c consumertest.Commit) {
		g.mu.Lock()
		defer g.mu.Unlock()

		g.commits = append(g.commits, c)
	}})
	g.CreateTopic("in", queues)
	t.Cleanup(func() {
		g.Close()
		pass(5 * time.Second) // protoactor counts undeliverable messages on a goroutine that lives for a second
	})

	return g
}

// queue is queue number id of the topic.
func queue(id int) pipeline.Queue { return pipeline.Queue{Topic: "in", ID: id} }

// publish stores messages named m<from> to m<to-1>, each with a key of its own; with one queue the offset is the number.
func (g *ground) publish(from, to int) {
	g.t.Helper()

	for i := from; i < to; i++ {
		m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Key: fmt.Sprintf("k%d", i), Body: []byte("x")}
		if err := g.Publish(g.t.Context(), "in", []*pipeline.Message{m}); err != nil {
			g.t.Fatal(err)
		}
	}
}

// job is a job over the topic in the group "job".
func job(channels ...pipeline.Channel) pipeline.Job {
	return pipeline.Job{
		Name: "job", Source: pipeline.Source{Topics: []string{"in"}}, Channels: channels,
		Retry: pipeline.RetryPolicy{Attempts: 5, Delays: []time.Duration{time.Second}},
	}
}

// run starts a job; what it publishes is collected. It is stopped at the end of the test.
func (g *ground) run(j pipeline.Job, opts actors.Options) *actors.Running {
	g.t.Helper()

	door := &doorkeeper{Broker: g.Broker, open: make(chan struct{})}
	defer close(door.open)

	r, err := actors.Start(j, door, opts)
	if err != nil {
		g.t.Fatal(err)
	}

	g.t.Cleanup(func() { r.Drain(-1) })
	r.OnEvent(func(e actors.Event) {
		g.mu.Lock()
		defer g.mu.Unlock()

		g.events = append(g.events, e)
	})

	return r
}

// doorkeeper lets a job join when its events are listened to, so that none is missed.
type doorkeeper struct {
	*consumertest.Broker

	open chan struct{}
}

func (d *doorkeeper) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	<-d.open

	return d.Broker.Join(ctx, s)
}

// kill ends a job as the death of its process does: from now on nothing of it reaches the broker.
func (g *ground) kill(r *actors.Running, instance string) {
	g.t.Helper()
	g.Crash("job", instance)
	r.Drain(-1)
}

// snapshot asks a job for its state.
func (g *ground) snapshot(r *actors.Running) *actors.Snapshot {
	g.t.Helper()

	s, err := r.Snapshot(g.t.Context())
	if err != nil {
		g.t.Fatal(err)
	}

	return s
}

// status is the state of one queue of the topic.
func (g *ground) status(r *actors.Running, id int) actors.QueueStatus {
	g.t.Helper()

	s := g.snapshot(r)
	i := slices.IndexFunc(s.Queues, func(q actors.QueueStatus) bool { return q.Queue == queue(id) })

	if i < 0 {
		g.t.Fatalf("no queue %d in %+v", id, s.Queues)
	}

	return s.Queues[i]
}

// committed is the commit watermark that the broker holds for a queue; -1 when it holds none.
func (g *ground) committed(id int) pipeline.Offset {
	s := g.Standings("job", "in")[id]
	if !s.Stored {
		return -1
	}

	return s.Checkpoint.Next
}

// finished fails the test unless the group has finished the topic: every commit watermark is at its queue's end.
func (g *ground) finished() {
	g.t.Helper()

	for _, topic := range []string{"in", consumer.RetryTopic("job")} {
		for _, s := range g.Standings("job", topic) {
			if s.Checkpoint.Next != s.End {
				g.t.Errorf("%s is committed up to %d of %d", s.Queue, s.Checkpoint.Next, s.End)
			}
		}
	}
}

// neverLower fails the test if a commit of a queue took it back.
func (g *ground) neverLower() {
	g.t.Helper()

	low := make(map[pipeline.Queue]pipeline.Offset)

	for _, c := range g.Calls(consumertest.OpCommit) {
		if !c.Applied {
			continue
		}

		if c.Offset < low[c.Queue] {
			g.t.Errorf("%s was committed at %d after %d", c.Queue, c.Offset, low[c.Queue])
		}

		low[c.Queue] = c.Offset
	}
}

// seen returns the events of one type.
func seen[E actors.Event](g *ground) []E {
	g.mu.Lock()
	defer g.mu.Unlock()

	var found []E

	for _, e := range g.events {
		if typed, ok := e.(E); ok {
			found = append(found, typed)
		}
	}

	return found
}

// dead returns the ids of the group's dead letters.
func (g *ground) dead() []string {
	var ids []string
	for _, m := range g.Messages(consumer.DeadLetterTopic("job")) {
		ids = append(ids, m.ID)
	}

	return ids
}

// shelf is a sink that remembers what it was given, in order, and may be told to fail.
type shelf struct {
	// fails says what is wrong with a batch; nil is nothing, and nothing of a failed batch is kept but what a BatchError
	// leaves out.
	fails func(ctx context.Context, batch []*pipeline.Message) error

	mu     sync.Mutex
	ids    []string
	closed int
}

func (s *shelf) Write(ctx context.Context, batch []*pipeline.Message) error {
	var err error
	if s.fails != nil {
		err = s.fails(ctx, batch)
	}

	partial, isPartial := err.(*pipeline.BatchError) //nolint:errorlint // the test's own
	if err != nil && !isPartial {
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for i, m := range batch {
		if !isPartial || partial.Failed[i] == nil {
			s.ids = append(s.ids, m.ID)
		}
	}

	return err
}

func (s *shelf) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.closed++

	return nil
}

// all returns the ids written so far.
func (s *shelf) all() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.ids)
}

// once fails the test unless m<from> to m<to-1> were written, each exactly once, over all of the shelves.
func once(t *testing.T, from, to int, shelves ...*shelf) {
	t.Helper()

	counts := make(map[string]int)

	for _, s := range shelves {
		for _, id := range s.all() {
			counts[id]++
		}
	}

	for i := from; i < to; i++ {
		if id := fmt.Sprintf("m%d", i); counts[id] != 1 {
			t.Errorf("%s was written %d times", id, counts[id])
		}
	}

	if len(counts) != to-from {
		t.Errorf("%d messages were written, want %d", len(counts), to-from)
	}
}

// atLeastOnce fails the test unless m<from> to m<to-1> were all written.
func atLeastOnce(t *testing.T, from, to int, shelves ...*shelf) {
	t.Helper()

	written := make(map[string]bool)

	for _, s := range shelves {
		for _, id := range s.all() {
			written[id] = true
		}
	}

	for i := from; i < to; i++ {
		if id := fmt.Sprintf("m%d", i); !written[id] {
			t.Errorf("%s was lost", id)
		}
	}
}

// pass lets virtual time pass.
func pass(d time.Duration) { <-time.After(d) }

// failing returns a stage that fails on the messages that pick picks.
func failing(pick func(*pipeline.Message) bool, err error) pipeline.Stage {
	return pipeline.Func("picky", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if pick(m) {
			return err
		}

		return emit(m)
	})
}

// named picks a message by its id.
func named(id string) func(*pipeline.Message) bool {
	return func(m *pipeline.Message) bool { return m.ID == id }
}

// gate returns a stage that holds the messages that pick picks until open is closed; with heed also until the call's
// context ends, whose error it returns.
func gate(pick func(*pipeline.Message) bool, open <-chan struct{}, heed bool) pipeline.Stage {
	return pipeline.Func("gate", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if !pick(m) {
			return emit(m)
		}

		ended := ctx.Done()
		if !heed {
			ended = nil
		}

		select {
		case <-open:
			return emit(m)
		case <-ended:
			return context.Cause(ctx)
		}
	})
}
