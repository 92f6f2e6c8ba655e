package embedded

import (
	"fmt"
	"testing"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// world is a broker with what tests do to it; every failure of a step ends the test.
type world struct {
	*Broker

	t testing.TB
}

// openWorld opens a broker, which is closed when the test ends.
func openWorld(tb testing.TB, o Options) *world {
	tb.Helper()

	w := &world{t: tb}
	w.open(o)
	tb.Cleanup(w.close)

	return w
}

func (w *world) open(o Options) {
	w.t.Helper()

	b, err := Open(o)
	if err != nil {
		w.t.Fatalf("Open: %v", err)
	}

	w.Broker = b
}

func (w *world) close() {
	w.t.Helper()

	if err := w.Close(); err != nil {
		w.t.Errorf("Close: %v", err)
	}
}

func (w *world) reopen(o Options) {
	w.t.Helper()
	w.close()
	w.open(o)
}

func (w *world) topic(name string, queues int) {
	w.t.Helper()

	if err := w.CreateTopic(w.t.Context(), name, queues); err != nil {
		w.t.Fatalf("CreateTopic: %v", err)
	}
}

func (w *world) publish(topic string, messages ...*pipeline.Message) {
	w.t.Helper()

	if err := w.Publish(w.t.Context(), topic, messages); err != nil {
		w.t.Fatalf("Publish: %v", err)
	}
}

// publishN publishes n messages with the bodies "0", "1", ... in one write.
func (w *world) publishN(topic string, n int) {
	w.t.Helper()

	messages := make([]*pipeline.Message, n)
	for i := range messages {
		messages[i] = &pipeline.Message{Body: fmt.Append(nil, i)}
	}

	w.publish(topic, messages...)
}

func (w *world) join(group string, topics ...string) *participant {
	w.t.Helper()

	return w.subscribe(consumer.Subscription{Group: group, Topics: topics})
}

func (w *world) subscribe(s consumer.Subscription) *participant {
	w.t.Helper()

	m, err := w.Join(w.t.Context(), s)
	if err != nil {
		w.t.Fatalf("Join: %v", err)
	}

	return &participant{Member: m, t: w.t}
}

// participant is a member with its last assignment.
type participant struct {
	consumer.Member

	t        testing.TB
	assigned consumer.Assignment
}

// await waits for an assignment that has n queues of a topic, and returns their leases.
func (p *participant) await(topic string, n int) []consumer.Lease {
	p.t.Helper()

	for {
		var leases []consumer.Lease

		for _, l := range p.assigned.Leases {
			if l.Queue.Topic == topic {
				leases = append(leases, l)
			}
		}

		if p.assigned.Generation > 0 && len(leases) == n {
			return leases
		}

		a, err := p.Assigned(p.t.Context(), p.assigned.Generation)
		if err != nil {
			p.t.Fatalf("Assigned: %v; want %d queues of %s", err, n, topic)
		}

		p.assigned = a
	}
}

// one waits for the only queue of a topic.
func (p *participant) one(topic string) consumer.Lease {
	p.t.Helper()

	return p.await(topic, 1)[0]
}

// pull pulls up to n messages.
func (p *participant) pull(l consumer.Lease, from pipeline.Offset, n int) consumer.Batch {
	p.t.Helper()

	batch, err := p.Pull(p.t.Context(), l, from, consumer.Limit{Messages: n, Bytes: 1 << 30})
	if err != nil {
		p.t.Fatalf("Pull of %s from %d: %v", l.Queue, from, err)
	}

	return batch
}

// all pulls everything that a queue holds.
func (p *participant) all(l consumer.Lease) []*pipeline.Message {
	p.t.Helper()

	var all []*pipeline.Message

	from, end := p.find(l, pipeline.First), p.find(l, pipeline.Last)
	for from < end {
		batch := p.pull(l, from, 1000)
		for i, m := range batch.Messages {
			if want := from + pipeline.Offset(i); m.Origin.Offset != want {
				p.t.Fatalf("pulled offset %d of %s, want %d", m.Origin.Offset, l.Queue, want)
			}
		}

		all = append(all, batch.Messages...)
		from = batch.Next
	}

	return all
}

func (p *participant) find(l consumer.Lease, at pipeline.Start) pipeline.Offset {
	p.t.Helper()

	o, err := p.Find(p.t.Context(), l.Queue, at)
	if err != nil {
		p.t.Fatalf("Find %s in %s: %v", at, l.Queue, err)
	}

	return o
}

func (p *participant) commit(l consumer.Lease, c consumer.Checkpoint) {
	p.t.Helper()

	if err := p.Commit(p.t.Context(), l, c); err != nil {
		p.t.Fatalf("Commit of %v in %s: %v", c, l.Queue, err)
	}
}

func (p *participant) leave() {
	p.t.Helper()

	if err := p.Leave(p.t.Context()); err != nil {
		p.t.Fatalf("Leave: %v", err)
	}
}

// bodies returns the bodies of messages as texts.
func bodies(messages []*pipeline.Message) []string {
	texts := make([]string, len(messages))
	for i, m := range messages {
		texts[i] = string(m.Body)
	}

	return texts
}

func noLog() *zap.SugaredLogger { return zap.NewNop().Sugar() }
