package pluginstest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// decent is a right plugin of each kind: it puts an exclamation mark behind each body.
type decent struct{ passed int }

func (d *decent) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	m.Body = append(slices.Clip(m.Body), '!')

	if err := emit(m); err != nil {
		return err
	}

	d.passed++

	return nil
}

// gather is decent as a gather stage.
type gather struct{ each decent }

func (g *gather) TransformBatch(ctx context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	for _, m := range batch {
		if err := g.each.Transform(ctx, m.Clone(), emit); err != nil {
			return err
		}
	}

	return nil
}

type transformFunc = func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error

// wrong is a transform with a bug.
type wrong struct {
	decent

	do transformFunc
}

func (w *wrong) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	return w.do(&w.decent, ctx, m, emit)
}

func subject(fresh func() any) *Subject {
	return &Subject{New: func(testing.TB) any { return fresh() }}
}

func TestRightPluginsPass(t *testing.T) {
	t.Parallel()

	Test(t, *subject(func() any { return &decent{} }))
	Test(t, *subject(func() any { return &gather{} }))
	Test(t, *subject(func() any { return pipeline.Discard }))
}

func FuzzARightPluginPasses(f *testing.F) { Fuzz(f, *subject(func() any { return &decent{} })) }

func TestWrongTransformsAreReported(t *testing.T) {
	t.Parallel()

	const hang = 100 * patience

	for _, test := range []struct {
		name, check, words string
		do                 func() transformFunc
	}{
		{"good messages rejected", checksOutcome, "good messages: no", func() transformFunc {
			return func(*decent, context.Context, *pipeline.Message, pipeline.Emit) error {
				return pipeline.Reject(errors.New("no"))
			}
		}},
		{"nothing emitted", checksOutcome, "0 outputs of good messages", func() transformFunc {
			return func(*decent, context.Context, *pipeline.Message, pipeline.Emit) error { return nil }
		}},
		{"nil emitted", checksOutcome, errNil.Error(), func() transformFunc {
			return func(_ *decent, _ context.Context, _ *pipeline.Message, emit pipeline.Emit) error { return emit(nil) }
		}},
		{"panic swallowed", "lets a panic of the next stage through and works on", "the next stage panicked; the plugin returned swallowed", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) (err error) {
				defer func() {
					if recover() != nil {
						err = errors.New("swallowed")
					}
				}()

				return d.Transform(ctx, m, emit)
			}
		}},
		{"lock held after a panic", "lets a panic of the next stage through and works on", "has not returned", func() transformFunc {
			held := make(chan struct{}, 1)

			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				select {
				case held <- struct{}{}:
				case <-time.After(hang):
				}

				err := d.Transform(ctx, m, emit)
				<-held

				return err
			}
		}},
		{"deadline of the next stage hidden", "waits for a next stage that hangs only as long as the context lets it", "gave up at the deadline", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if err := d.Transform(ctx, m, emit); err != nil {
					return pipeline.Reject(err)
				}

				return nil
			}
		}},
		{"impatience", "bears a slow next stage", "impatient", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				start := time.Now()

				if err := d.Transform(ctx, m, emit); err != nil {
					return err
				}

				if time.Since(start) > time.Millisecond {
					return errors.New("impatient")
				}

				return nil
			}
		}},
		{"refusal swallowed", "stops when the next stage refuses, and works on", "the next stage refused; the plugin returned <nil>", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				_ = d.Transform(ctx, m, emit)

				return nil
			}
		}},
		{"room for a hundred", "takes many messages", "full", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if d.passed == 100 {
					return errors.New("full")
				}

				return d.Transform(ctx, m, emit)
			}
		}},
		{"huge error", "takes a huge body", "makes an error of", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if len(m.Body) > 1000 {
					return errors.New(string(m.Body))
				}

				return d.Transform(ctx, m, emit)
			}
		}},
		{"message lost", "loses nothing when its context has ended", "emitted nothing", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if ctx.Err() != nil {
					return nil //nolint:nilerr // the bug
				}

				return d.Transform(ctx, m, emit)
			}
		}},
		{"context's end rejects", "loses nothing when its context has ended", "not rejected", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				return pipeline.Reject(d.Transform(ctx, m, emit))
			}
		}},
		{"buffer used again", "leaves alone what it was given and what it has given away", "changed after it was emitted", func() transformFunc {
			var buffer []byte

			return func(_ *decent, _ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				buffer = append(buffer[:0], m.Body...)
				m.Body = buffer

				return emit(m)
			}
		}},
		{"body written in place", "leaves alone what it was given and what it has given away", "wrote into the body of message", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				m.Body[0] = '!'

				return d.Transform(ctx, m, emit)
			}
		}},
		{"panic of a bad body", "bears bodies that make no sense", "the plugin panicked", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				_ = m.Body[0]

				return d.Transform(ctx, m, emit)
			}
		}},
		{"bad body breaks the instance", "bears bodies that make no sense", "broken", func() transformFunc {
			broken := false

			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				broken = broken || string(m.Body) == "null"
				if broken {
					return errors.New("broken")
				}

				return d.Transform(ctx, m, emit)
			}
		}},
		{"bad body hangs", "bears bodies that make no sense", "has not returned", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if len(m.Body) == 0 {
					<-time.After(hang)
				}

				return d.Transform(ctx, m, emit)
			}
		}},
		{"body of a bad message written in place", "bears bodies that make no sense", "wrote into the body", func() transformFunc {
			return func(d *decent, ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if string(m.Body) == "null" {
					m.Body[0] = 'N'
				}

				return d.Transform(ctx, m, emit)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				check := named(t, test.check)
				s := subject(func() any { return &wrong{do: test.do()} })

				if got := note(t, func(tb testing.TB) { check(tb, s) }); !strings.Contains(got, test.words) {
					t.Errorf("reported %.500q, want something with %q", got, test.words)
				}

				if got := note(t, func(tb testing.TB) { check(tb, subject(func() any { return &decent{} })) }); got != "" {
					t.Errorf("a right transform is reported: %.500s", got)
				}

				<-time.After(2 * hang)
			})
		})
	}
}

func TestWrongSinksAndGathersAreReported(t *testing.T) {
	t.Parallel()

	var (
		kept []*pipeline.Message
		mu   sync.Mutex
	)

	for _, test := range []struct {
		name, check, words string
		plugin             any
	}{
		{
			"batch changed", "leaves alone what it was given and what it has given away", "the sink changed message 0",
			pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
				batch[0] = nil

				return nil
			}),
		},
		{
			"message changed", "leaves alone what it was given and what it has given away", "the sink changed message 1",
			pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
				batch[1].Key = ""

				return nil
			}),
		},
		{
			"empty batch", "makes nothing of nothing", "the plugin panicked",
			pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
				_ = batch[0]

				return nil
			}),
		},
		{
			"something of nothing", "makes nothing of nothing", "1 outputs",
			pipeline.BatchTransformFunc(func(_ context.Context, _ []*pipeline.Message, emit pipeline.Emit) error {
				return emit(&pipeline.Message{})
			}),
		},
		{
			"partial failure rejects since the context ended", "loses nothing when its context has ended", "not rejected",
			pipeline.SinkFunc(func(ctx context.Context, _ []*pipeline.Message) error {
				var failures pipeline.BatchError

				failures.Fail(1, pipeline.Reject(ctx.Err()))

				return failures.Err()
			}),
		},
		{
			"output kept and changed by the next batch", "leaves alone what it was given and what it has given away", "changed after it was emitted",
			pipeline.BatchTransformFunc(func(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
				mu.Lock()
				defer mu.Unlock()

				for _, m := range kept {
					m.Key = "again"
				}

				kept = append(kept, batch[0])

				return emit(batch[0])
			}),
		},
		{
			"lanes that fail each other", "runs in several instances at once", "busy",
			pipeline.SinkFunc(func(context.Context, []*pipeline.Message) error {
				return errors.New("busy")
			}),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			check := named(t, test.check)
			s := subject(func() any { return test.plugin })

			if got := note(t, func(tb testing.TB) { check(tb, s) }); !strings.Contains(got, test.words) {
				t.Errorf("reported %.500q, want something with %q", got, test.words)
			}
		})
	}
}

func TestRegisteredPluginsAreFound(t *testing.T) {
	t.Parallel()

	var r plugins.Registry

	doc := plugins.Doc{Metrics: []plugins.Metric{{Name: "n"}}}

	err := errors.Join(
		plugins.AddTransform(&r, "x", doc, func(plugins.Env, struct{}) (pipeline.Transform, error) { return &decent{}, nil }),
		plugins.AddSink(&r, "x", plugins.Doc{}, func(plugins.Env, struct{}) (pipeline.Sink, error) { return nil, errors.New("no") }),
		plugins.AddGather(&r, "x", doc, func(plugins.Env, struct{}) (pipeline.BatchTransform, error) { return &gather{}, nil }),
	)
	if err != nil {
		t.Fatal(err)
	}

	if s := Of(t, &r, plugins.Transform, "x", nil, plugins.Env{}); !slices.Equal(s.Metrics, []string{"n"}) || s.New(t) == nil {
		t.Errorf("the subject is %+v", s)
	}

	for words, f := range map[string]func(tb testing.TB){
		`unknown sink "y"`: func(tb testing.TB) { tb.Helper(); Of(tb, &r, plugins.Sink, "y", nil, plugins.Env{}) },
		"no kind":          func(tb testing.TB) { tb.Helper(); Of(tb, &r, "cog", "x", nil, plugins.Env{}) },
		"New: plugins: sink": func(tb testing.TB) {
			tb.Helper()

			s := Of(tb, &r, plugins.Sink, "x", nil, plugins.Env{})
			checkOutcome(tb, &s)
		},
	} {
		if got := note(t, f); !strings.Contains(got, words) {
			t.Errorf("reported %q, want %q", got, words)
		}
	}
}
