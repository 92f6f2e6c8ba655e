package pipelinetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// split makes a message of each word, with its number as a property. It rejects "bad".
func split(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("split: %w", err)
	}

	if string(m.Body) == "bad" {
		return pipeline.Reject(errors.New("split: a bad word"))
	}

	for i, word := range bytes.Fields(m.Body) {
		c := m.Clone()
		c.Body = word
		c.SetProp("word", strconv.Itoa(i))

		if err := emit(c); err != nil {
			return err
		}
	}

	return nil
}

func splitCases() []Case {
	word := func(body string, i int) *pipeline.Message {
		m := Message(body)
		m.SetProp("word", strconv.Itoa(i))

		return m
	}

	return []Case{
		{Name: "two words", In: Message("one two"), Want: []*pipeline.Message{word("one", 0), word("two", 1)}},
		{Name: "no word", In: Message("  ")},
		{Name: "bad word", In: Message("bad"), Fails: pipeline.IsRejected},
	}
}

func auditTransform(t *testing.T, fresh func() (pipeline.Transform, error)) audit {
	t.Helper()

	a := make(audit)
	for _, check := range transformChecks() {
		a[check.name] = note(t, func(tb testing.TB) { check.run(tb, fresh, splitCases()) })
	}

	return a
}

func TestARightTransformPasses(t *testing.T) {
	t.Parallel()

	fresh := func() (pipeline.Transform, error) { return &lifelong{TransformFunc: split}, nil }

	TestTransform(t, fresh, splitCases()...)
	auditTransform(t, fresh).none(t)
}

func TestATransformMayIgnoreItsContextWhenItDoesItsWork(t *testing.T) {
	t.Parallel()

	auditTransform(t, func() (pipeline.Transform, error) {
		return pipeline.TransformFunc(func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			return split(t.Context(), m, emit)
		}), nil
	}).none(t)
}

func TestBuiltInStagesPass(t *testing.T) {
	t.Parallel()

	tagged := Message("body")
	tagged.Tag = "major"

	TestTransform(t, pipeline.Filter("major", pipeline.Tagged("major")).New,
		Case{Name: "picked", In: tagged, Want: []*pipeline.Message{tagged}},
		Case{Name: "not picked", In: Message("body")},
	)
}

func TestWrongTransformsAreReported(t *testing.T) {
	t.Parallel()

	const (
		outcome   = "makes of each case what it should"
		emitError = "stops at an error of emit and returns it"
		cancelled = "loses nothing when its context has ended"
		anything  = "survives any message"
	)

	for _, test := range []struct {
		name         string
		transform    pipeline.TransformFunc
		check, words string
	}{
		{"other output", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			return split(ctx, m, func(out *pipeline.Message) error {
				out.Tag = "x"

				return emit(out)
			})
		}, outcome, "output 0 is"},
		{"too few outputs", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			sent := false

			return split(ctx, m, func(out *pipeline.Message) error {
				if sent {
					return nil
				}

				sent = true

				return emit(out)
			})
		}, outcome, "1 outputs, want 2"},
		{"no error", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if string(m.Body) == "bad" {
				return nil
			}

			return split(ctx, m, emit)
		}, outcome, "not the error that was expected"},
		{"other error", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if string(m.Body) == "bad" {
				return errOther
			}

			return split(ctx, m, emit)
		}, outcome, "something else, which is not the error"},
		{"error for nothing", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			return errors.Join(split(ctx, m, emit), errOther)
		}, outcome, "something else"},
		{"origin made up", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			return split(ctx, m, func(out *pipeline.Message) error {
				out.Origin.Offset++

				return emit(out)
			})
		}, outcome, "has the origin"},
		{"input changed by a failure", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if string(m.Body) == "bad" {
				m.Tag = "bad"
			}

			return split(ctx, m, emit)
		}, outcome, "failed and left the input as"},
		{"body written in place", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			err := split(ctx, m, emit)
			copy(m.Body, "ONE")

			return err
		}, outcome, "wrote into the body"},
		{"body of a failing message written in place", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if string(m.Body) == "bad" {
				copy(m.Body, "BAD")

				return pipeline.Reject(errOther)
			}

			return split(ctx, m, emit)
		}, outcome, "wrote into the body"},
		{"output changed after it was emitted", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			return split(ctx, m, func(out *pipeline.Message) error {
				err := emit(out)
				out.Tag = "x"

				return err
			})
		}, outcome, "changed output 0 after emitting it"},
		{"one message emitted twice", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			for i, word := range bytes.Fields(m.Body) {
				m.Body = word
				m.SetProp("word", strconv.Itoa(i))

				if err := emit(m); err != nil {
					return err
				}
			}

			return split(ctx, &pipeline.Message{}, emit)
		}, outcome, "changed by the next stage"},
		{"properties shared by outputs", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			m.SetProp("word", "0")

			return split(ctx, m, func(out *pipeline.Message) error {
				shared := *out
				shared.Props, m.Props["word"] = m.Props, out.Props["word"]

				return emit(&shared)
			})
		}, outcome, "changed by the next stage"},
		{"nil emitted", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if len(m.Body) > 0 {
				return emit(nil)
			}

			return split(ctx, m, emit)
		}, outcome, errNil.Error()},
		{"error of emit swallowed", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			err := split(ctx, m, emit)
			if pipeline.IsRejected(err) || ctx.Err() != nil {
				return err
			}

			return nil
		}, emitError, "emit refused output 0, but Transform returned <nil>"},
		{"error of emit ignored until the end", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			var first error

			err := split(ctx, m, func(out *pipeline.Message) error {
				if err := emit(out); first == nil {
					first = err
				}

				return nil
			})

			return errors.Join(err, first)
		}, emitError, "went on emitting"},
		{"message lost when the context has ended", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the bug
			}

			return split(ctx, m, emit)
		}, cancelled, "0 outputs, want 2"},
		{"message rejected since the context has ended", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			return pipeline.Reject(split(ctx, m, emit))
		}, cancelled, "rejects the message"},
		{"error that hides the context's", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if ctx.Err() != nil {
				return errOther
			}

			return split(ctx, m, emit)
		}, cancelled, "something else"},
		{"context not heeded", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if ctx.Err() != nil {
				<-time.After(hang)
			}

			return split(ctx, m, emit)
		}, cancelled, "has not returned after 1m0s"},
		{"panic without a body", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			_ = m.Body[0]

			return split(ctx, m, emit)
		}, anything, "panicked: runtime error: index out of range"},
		{"panic without properties", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			m.Props["x"] = "x"

			return split(ctx, m, emit)
		}, outcome, "panicked: assignment to entry in nil map"},
		{"input changed by a failure of a bare message", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if len(m.Body) == 0 {
				m.SetProp("x", "x")

				return errOther
			}

			return split(ctx, m, emit)
		}, anything, "failed and left the input as"},
		{"large body refused by a panic", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if len(m.Body) > 1<<16 {
				panic("too large")
			}

			return split(ctx, m, emit)
		}, anything, "panicked: too large"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T) {
				auditTransform(t, func() (pipeline.Transform, error) { return test.transform, nil }).
					has(t, test.check, test.words)
			})
		})
	}
}

func TestWrongFactoriesAreReported(t *testing.T) {
	t.Parallel()

	const (
		outcome = "makes of each case what it should"
		apart   = "has instances that share nothing"
		closed  = "can be closed twice"
	)

	var (
		mu   sync.Mutex
		seen = make(map[string]bool)
	)

	for _, test := range []struct {
		name         string
		fresh        func() (pipeline.Transform, error)
		check, words string
	}{
		{"an error", func() (pipeline.Transform, error) { return nil, errOther }, outcome, "something else"},
		{"nothing", func() (pipeline.Transform, error) { return nil, nil }, outcome, "New made <nil>"}, //nolint:nilnil // the point
		{
			"what does not open", func() (pipeline.Transform, error) {
				return &lifelong{TransformFunc: split, failOpen: errOther}, nil
			}, outcome, "Open: something else",
		},
		{
			"what does not close", func() (pipeline.Transform, error) {
				return &lifelong{TransformFunc: split, failClose: errOther}, nil
			}, outcome, "Close: something else",
		},
		{
			"what closes once", func() (pipeline.Transform, error) {
				return &once{TransformFunc: split, closed: make(chan struct{})}, nil
			}, closed, "Close after Close panicked: close of closed channel",
		},
		{
			"instances with a common memory", func() (pipeline.Transform, error) {
				return pipeline.TransformFunc(func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
					mu.Lock()
					again := seen[string(m.Body)]
					seen[string(m.Body)] = true
					mu.Unlock()

					if again {
						return nil
					}

					return split(ctx, m, emit)
				}), nil
			}, apart, "0 outputs, want 2",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			auditTransform(t, test.fresh).has(t, test.check, test.words)
		})
	}
}

// lifelong is a transform that must be open while it works.
type lifelong struct {
	pipeline.TransformFunc

	failOpen, failClose error
	opened              bool
}

func (l *lifelong) Open(context.Context) error {
	l.opened = true

	return l.failOpen
}

func (l *lifelong) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if !l.opened {
		return errors.New("not open")
	}

	return l.TransformFunc(ctx, m, emit)
}

func (l *lifelong) Close() error {
	l.opened = false

	return l.failClose
}

// once panics when it is closed again.
type once struct {
	pipeline.TransformFunc

	closed chan struct{}
}

func (o *once) Close() error {
	close(o.closed)

	return nil
}
