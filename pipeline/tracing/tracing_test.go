package tracing_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/tracing"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = errors.New("broken by hunter2")

// world has a recorder of spans and what the sink got.
type world struct {
	*testing.T
	*tracetest.SpanRecorder

	options tracing.Options
	written []*pipeline.Message
}

func newWorld(t *testing.T, share float64) *world {
	t.Helper()

	r := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(r))

	return &world{T: t, SpanRecorder: r, options: tracing.Options{
		Tracer: provider.Tracer("test"), Share: share,
		Redact: func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") },
	}}
}

func (w *world) Write(_ context.Context, batch []*pipeline.Message) error {
	w.written = append(w.written, batch...)

	return nil
}

// job has a channel "first" with two stages, of which the second makes two messages of one, and a channel "second" with a gather
// and a third one with the sink.
func (w *world) job(stages ...pipeline.Stage) pipeline.Job {
	twice := func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		return errors.Join(emit(m.Clone()), emit(m))
	}

	stages = append(stages, pipeline.Func("pass", pass), pipeline.Func("twice", twice))

	return pipeline.Job{
		Name: "job", Source: pipeline.Source{Topics: []string{"in"}},
		Channels: []pipeline.Channel{
			{Name: "first", Stages: stages, Routes: []pipeline.Route{{To: "second"}}},
			{
				Name: "second", Gather: &pipeline.GatherStage{New: func() (pipeline.BatchTransform, error) { return joined{}, nil }},
				Routes: []pipeline.Route{{To: "third"}},
			},
			{Name: "third", Sink: w},
		},
	}
}

func pass(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error { return emit(m) }

// joined makes one message of a batch.
type joined struct{}

func (joined) TransformBatch(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	return emit(&pipeline.Message{ID: fmt.Sprintf("%d together", len(batch))})
}

// run sends messages through a job as lanes do, all in one batch.
func (w *world) run(job pipeline.Job, messages ...*pipeline.Message) (failures []error) {
	w.Helper()

	job = tracing.Job(job, w.options)
	c := &job.Channels[0]

	var out, gathered []*pipeline.Message

	collect := func(to *[]*pipeline.Message) pipeline.Emit {
		return func(m *pipeline.Message) error {
			*to = append(*to, m)

			return nil
		}
	}

	chain, err := pipeline.NewChain(c.Name, c.Stages, pipeline.ChainHooks{Out: collect(&out)})
	if err != nil {
		w.Fatal(err)
	}

	for _, m := range messages {
		if err := chain.Run(w.Context(), m, 0); err != nil {
			failures = append(failures, err)
		}
	}

	gather, err := job.Channels[1].Gather.New()
	if err != nil {
		w.Fatal(err)
	}

	if err := gather.TransformBatch(w.Context(), out, collect(&gathered)); err != nil {
		w.Error(err)
	}

	if err := job.Channels[2].Sink.Write(w.Context(), gathered); err != nil {
		w.Error(err)
	}

	return failures
}

// tree tells the spans as paths from their roots, sorted.
func (w *world) tree() []string {
	names := make(map[trace.SpanID]string)
	parents := make(map[trace.SpanID]trace.SpanID)

	for _, s := range w.Ended() {
		names[s.SpanContext().SpanID()] = s.Name()
		parents[s.SpanContext().SpanID()] = s.Parent().SpanID()
	}

	var paths []string

	for id := range names {
		path := names[id]

		for up := parents[id]; names[up] != ""; up = parents[up] {
			path = names[up] + " > " + path
		}

		paths = append(paths, path)
	}

	slices.Sort(paths)

	return paths
}

func TestSpansFollowAMessageThroughTheJob(t *testing.T) {
	t.Parallel()

	w := newWorld(t, 1)

	given := w.job()
	if failures := w.run(given, &pipeline.Message{ID: "m", Topic: "in"}); failures != nil {
		t.Fatal(failures)
	}

	want := []string{
		"first/pass",
		"first/pass > first/twice",
		"first/pass > first/twice > second/gather",
		"first/pass > first/twice > second/gather",
		"first/pass > first/twice > second/gather > third/sink",
	}
	if got := w.tree(); !slices.Equal(got, want) {
		t.Errorf("the spans are %q, want %q", got, want)
	}

	if len(w.written) != 1 || w.written[0].ID != "2 together" || w.written[0].Props["traceparent"] == "" {
		t.Errorf("the sink got %+v", w.written)
	}

	spans := w.Ended()
	if at := slices.IndexFunc(spans, func(s sdk.ReadOnlySpan) bool { return s.Name() == "first/pass" }); at < 0 ||
		spans[at].SpanKind() != trace.SpanKindConsumer || !strings.Contains(fmt.Sprint(spans[at].Attributes()), "messaging.message.id") {
		t.Errorf("the first span is %v", spans[at].Attributes())
	}

	if _, wrapped := given.Channels[2].Sink.(*world); !wrapped {
		t.Error("the given job was changed")
	}
}

func TestAProducersDecisionIsFollowed(t *testing.T) {
	t.Parallel()

	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

	for flags, want := range map[string]int{"01": 5, "00": 0, "zz": 0} {
		w := newWorld(t, 0.5)
		props := map[string]string{"traceparent": parent + flags, "other": "kept"}
		before := maps.Clone(props)

		w.run(w.job(), &pipeline.Message{Props: props})

		spans := w.Ended()
		if len(spans) != want {
			t.Errorf("flags %s: %d spans, want %d", flags, len(spans), want)
		}

		for _, s := range spans {
			if got := s.SpanContext().TraceID().String(); got != "0af7651916cd43dd8448eb211c80319c" {
				t.Errorf("a span of trace %s", got)
			}
		}

		if !maps.Equal(props, before) {
			t.Errorf("the properties, which a copy may share, became %v", props)
		}
	}
}

func TestAShareOfTheMessagesIsTraced(t *testing.T) {
	t.Parallel()

	for share, wants := range map[float64][2]int{0: {0, 0}, 0.25: {150, 350}, 1: {1000, 1000}} {
		w := newWorld(t, share)

		var messages []*pipeline.Message
		for range 1000 {
			messages = append(messages, &pipeline.Message{})
		}

		w.run(w.job(), messages...)

		roots := 0

		for _, s := range w.Ended() {
			if !s.Parent().IsValid() {
				roots++
			}
		}

		if roots < wants[0] || roots > wants[1] {
			t.Errorf("share %v: %d of 1000 messages are traced", share, roots)
		}
	}
}

func TestFailuresAreAtTheirStage(t *testing.T) {
	t.Parallel()

	for name, stage := range map[string]pipeline.TransformFunc{
		"error": func(context.Context, *pipeline.Message, pipeline.Emit) error { return errBroken },
		"panic": func(context.Context, *pipeline.Message, pipeline.Emit) error { panic("hunter2") },
	} {
		w := newWorld(t, 1)
		m := &pipeline.Message{Props: map[string]string{"a": "b"}}

		failures := w.run(w.job(pipeline.Func("before", pass), pipeline.Func("breaks", stage)), m)
		if len(failures) != 1 || !strings.Contains(failures[0].Error(), "first/breaks") {
			t.Errorf("%s: %v", name, failures)
		}

		for _, s := range w.Ended() {
			want := codes.Unset
			if s.Name() == "first/breaks" {
				want = codes.Error
			}

			if got := s.Status(); got.Code != want || strings.Contains(got.Description, "hunter2") {
				t.Errorf("%s: %s ended with %v", name, s.Name(), got)
			}
		}
	}
}

// part fails for some of a batch, and is opened, closed and metered.
type part struct{ opened, closed int }

func (*part) Write(context.Context, []*pipeline.Message) error {
	var failures pipeline.BatchError

	failures.Fail(1, errBroken)

	return &failures
}

func (p *part) Open(context.Context) error {
	p.opened++

	return nil
}

func (p *part) Close() error {
	p.closed++

	return errBroken
}

func (*part) Meter() map[string]int64 { return map[string]int64{"n": 7} }

func TestSinksFailInPartAndLiveAsBefore(t *testing.T) {
	t.Parallel()

	w, inner := newWorld(t, 1), new(part)
	job := tracing.Job(pipeline.Job{Channels: []pipeline.Channel{{Name: "only", Sink: inner}}}, w.options)
	outer := job.Channels[0].Sink

	batch := []*pipeline.Message{{ID: "a"}, {ID: "b"}}
	if err := outer.Write(t.Context(), batch); err == nil {
		t.Error("no error")
	}

	if batch[0].Props != nil {
		t.Errorf("the lane's own message became %+v", batch[0])
	}

	for i, s := range w.Ended() {
		if failed := s.Status().Code == codes.Error; failed != (i == 1) || s.Parent().IsValid() {
			t.Errorf("span %d ended with %v", i, s.Status())
		}
	}

	if len(w.Ended()) != 2 {
		t.Errorf("%d spans", len(w.Ended()))
	}

	opener, isOpener := outer.(pipeline.Opener)
	closer, isCloser := outer.(io.Closer)
	meter, isMeter := outer.(pipeline.Meter)

	if !isOpener || opener.Open(t.Context()) != nil || inner.opened != 1 {
		t.Errorf("opened %d times", inner.opened)
	}

	if !isCloser || !errors.Is(closer.Close(), errBroken) || inner.closed != 1 {
		t.Errorf("closed %d times", inner.closed)
	}

	if !isMeter || meter.Meter()["n"] != 7 {
		t.Error("no counts")
	}
}

// BenchmarkUntraced is what a stage costs a message that is not followed, bare and wrapped.
func BenchmarkUntraced(b *testing.B) {
	channel := pipeline.Channel{Name: "only", Stages: []pipeline.Stage{pipeline.Func("first", pass), pipeline.Func("second", pass)}}
	bare := pipeline.Job{Channels: []pipeline.Channel{channel}}
	tracer := sdk.NewTracerProvider().Tracer("test")

	for name, job := range map[string]pipeline.Job{
		"bare": bare, "wrapped": tracing.Job(bare, tracing.Options{Tracer: tracer, Share: 1e-9}),
	} {
		b.Run(name, func(b *testing.B) {
			chain, err := pipeline.NewChain("only", job.Channels[0].Stages, pipeline.ChainHooks{
				Out: func(*pipeline.Message) error { return nil },
			})
			if err != nil {
				b.Fatal(err)
			}

			m := new(pipeline.Message)

			b.ReportAllocs()

			for b.Loop() {
				if err := chain.Run(b.Context(), m, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
