package pipelinetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func auditSink(t *testing.T, h Harness) audit {
	t.Helper()

	a := make(audit)
	for _, check := range sinkChecks() {
		a[check.name] = note(t, func(tb testing.TB) { check.run(tb, h) })
	}

	return a
}

func TestARightSinkPasses(t *testing.T) {
	t.Parallel()

	h := harness((*memory).Write)

	TestSink(t, h)
	auditSink(t, h).none(t)
}

func TestASinkMayIgnoreItsContextWhenItStores(t *testing.T) {
	t.Parallel()

	auditSink(t, harness(func(s *memory, _ context.Context, batch []*pipeline.Message) error {
		return s.Write(t.Context(), batch)
	})).none(t)
}

func TestASinkMayFailEachMessageForAnEndedContext(t *testing.T) {
	t.Parallel()

	auditSink(t, harness(func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
		var failures pipeline.BatchError
		for i := range batch {
			failures.Fail(i, ctx.Err())
		}

		if ctx.Err() != nil {
			return failures.Err()
		}

		return s.Write(ctx, batch)
	})).none(t)
}

func TestWrongSinksAreReported(t *testing.T) {
	t.Parallel()

	const (
		stored     = "has stored everything when it returns nil"
		empty      = "stores nothing of an empty batch"
		cancelled  = "claims nothing when its context has ended"
		concurrent = "takes batches from all lanes at once"
		large      = "takes a large body"
	)

	for _, test := range []struct {
		name         string
		write        func(s *memory, ctx context.Context, batch []*pipeline.Message) error
		check, words string
	}{
		{"claims too much", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			return s.Write(ctx, batch[:min(1, len(batch))])
		}, stored, `the store holds -1 of "{\"n\":2}"`},
		{"stores twice", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			return errors.Join(s.Write(ctx, batch), s.Write(ctx, batch))
		}, stored, `the store holds +1 of "{\"n\":2}"`},
		{"fails for nothing", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			return errors.Join(s.Write(ctx, batch), errOther)
		}, stored, "Write of 3 messages: something else"},
		{"changes a message", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			for _, m := range batch {
				m.Key = "x"
			}

			return s.Write(ctx, batch)
		}, stored, "Write changed message 0"},
		{"changes a body", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			err := s.Write(ctx, batch)
			for _, m := range batch {
				copy(m.Body, " ")
			}

			return err
		}, stored, "Write changed message 0"},
		{"sorts the batch", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			slices.Reverse(batch)

			return s.Write(ctx, batch)
		}, stored, "Write changed message 0"},
		{"panics without messages", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			_ = batch[0]

			return s.Write(ctx, batch)
		}, empty, "Write panicked"},
		{"fails without messages", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if len(batch) == 0 {
				return errOther
			}

			return s.Write(ctx, batch)
		}, empty, "Write of 0 messages: something else"},
		{"stores without messages", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if len(batch) == 0 {
				batch = Messages("[]")
			}

			return s.Write(ctx, batch)
		}, empty, `the store holds +2 of "[]"`},
		{"stores poison", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			for _, m := range batch {
				m.Tag = ""
			}

			return s.Write(ctx, batch)
		}, partialFailure, "Write returned <nil>"},
		{"fails the whole batch", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if slices.ContainsFunc(batch, func(m *pipeline.Message) bool { return m.Tag == "poison" }) {
				return errOther
			}

			return s.Write(ctx, batch)
		}, partialFailure, "Write returned something else"},
		{"names the neighbour", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			return renumber(s.Write(ctx, batch), 1)
		}, partialFailure, "message 1: poisoned true, failed with <nil>"},
		{"names nobody", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			return renumber(s.Write(ctx, batch), 9)
		}, partialFailure, "the error names message 10 of 5"},
		{"stops at poison", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			err := s.Write(ctx, batch)
			if err != nil {
				s.bodies = s.bodies[:1]
			}

			return err
		}, partialFailure, "the store holds -1"},
		{"forgets when the context has ended", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the bug
			}

			return s.Write(ctx, batch)
		}, cancelled, "the store holds -1"},
		{"hides that the context has ended", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if s.Write(ctx, batch) != nil {
				return errOther
			}

			return nil
		}, cancelled, "Write fails with something else"},
		{"rejects when the context has ended", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			return pipeline.Reject(s.Write(ctx, batch))
		}, cancelled, "want the context's error, not rejected"},
		{"rejects one when the context has ended", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if err := ctx.Err(); err != nil {
				return &pipeline.BatchError{Failed: map[int]error{0: err, 1: pipeline.Reject(err)}}
			}

			return s.Write(ctx, batch)
		}, cancelled, "want the context's error, not rejected"},
		{"does not heed its context", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			if ctx.Err() != nil {
				<-time.After(hang)
			}

			return s.Write(ctx, batch)
		}, cancelled, "Write has not returned after 1m0s"},
		{"loses one of two at once", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			before := s.stored()

			<-time.After(time.Millisecond)

			s.mu.Lock()
			s.bodies = before
			s.mu.Unlock()

			return s.Write(ctx, batch)
		}, concurrent, "the store holds -1"},
		{"cuts large bodies", func(s *memory, ctx context.Context, batch []*pipeline.Message) error {
			short := make([]*pipeline.Message, len(batch))
			for i, m := range batch {
				short[i] = m.Clone()
				short[i].Body = m.Body[:min(len(m.Body), 1<<16)]
			}

			return s.Write(ctx, short)
		}, large, "the store holds -1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) { auditSink(t, harness(test.write)).has(t, test.check, test.words) })
		})
	}
}

// renumber moves the failures of a batch by n places.
func renumber(err error, n int) error {
	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok {
		return err
	}

	var moved pipeline.BatchError
	for i, cause := range failures.Failed {
		moved.Fail(i+n, cause)
	}

	return moved.Err()
}

func TestWrongLivesOfSinksAreReported(t *testing.T) {
	t.Parallel()

	const (
		stored = "has stored everything when it returns nil"
		closed = "can be closed twice"
	)

	for _, test := range []struct {
		name         string
		sink         func(s *memory) pipeline.Sink
		check, words string
	}{
		{"does not open", func(s *memory) pipeline.Sink { return &mortal{memory: s, failOpen: errOther} }, stored, "Open: something else"},
		{"does not close", func(s *memory) pipeline.Sink { return &mortal{memory: s, failClose: errOther} }, stored, "Close: something else"},
		{"closes once", func(s *memory) pipeline.Sink {
			return &mortal{memory: s, closed: make(chan struct{})}
		}, closed, "Close after Close panicked"},
		{"stores when it is closed", func(s *memory) pipeline.Sink { return &lazy{store: s} }, stored, "the store holds -1"},
	} {
		h := Harness{New: func(testing.TB) (pipeline.Sink, func() []string) {
			s := &memory{}

			return test.sink(s), s.stored
		}, Poison: poison}

		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			auditSink(t, h).has(t, test.check, test.words)
		})
	}
}

// mortal is a sink with something to open and close.
type mortal struct {
	*memory

	failOpen, failClose error
	closed              chan struct{} // nil may be closed again
}

func (m *mortal) Open(context.Context) error { return m.failOpen }

func (m *mortal) Close() error {
	if m.closed != nil {
		close(m.closed)
	}

	return m.failClose
}

// lazy stores nothing before it is closed.
type lazy struct {
	mu    sync.Mutex
	store *memory
	all   []*pipeline.Message
}

func (l *lazy) Write(_ context.Context, batch []*pipeline.Message) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.all = append(l.all, batch...)

	return nil
}

func (l *lazy) Close() error { return l.store.Write(context.Background(), l.all) }
