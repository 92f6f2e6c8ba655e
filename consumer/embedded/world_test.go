package embedded

import (
	"testing"

	"github.com/millrace/millrace/consumer"
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

func (w *world) join(group string, topics ...string) consumer.Member {
	w.t.Helper()

	m, err := w.Join(w.t.Context(), consumer.Subscription{Group: group, Topics: topics})
	if err != nil {
		w.t.Fatalf("Join: %v", err)
	}

	return m
}

// assigned waits until a member owns n queues.
func (w *world) assigned(m consumer.Member, n int) consumer.Assignment {
	w.t.Helper()

	var a consumer.Assignment

	for len(a.Leases) != n {
		var err error

		if a, err = m.Assigned(w.t.Context(), a.Generation); err != nil {
			w.t.Fatalf("Assigned: %v, want %d queues", err, n)
		}
	}

	return a
}
