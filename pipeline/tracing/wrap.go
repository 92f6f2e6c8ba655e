package tracing

import (
	"context"
	"errors"
	"io"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/millrace/millrace/pipeline"
)

// life hands on what a plugin may implement beside its work.
type life struct{ plugin any }

// Open opens the plugin, where it is an opener.
func (l life) Open(ctx context.Context) error {
	if o, ok := l.plugin.(pipeline.Opener); ok {
		return o.Open(ctx)
	}

	return nil
}

// Close closes the plugin, where it is a closer.
func (l life) Close() error {
	if c, ok := l.plugin.(io.Closer); ok {
		return c.Close() //nolint:wrapcheck // it is the plugin's
	}

	return nil
}

// Meter returns the plugin's counts, where it has some.
func (l life) Meter() map[string]int64 {
	if m, ok := l.plugin.(pipeline.Meter); ok {
		return m.Meter()
	}

	return nil
}

type transform struct {
	life
	step

	inner pipeline.Transform
}

// Transform calls the stage within a span. What comes after the stage in its channel is called from within, and so are the spans.
func (t *transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	ctx, span := t.begin(ctx, m)
	if span == nil {
		return t.inner.Transform(ctx, m, emit)
	}

	returned := false

	defer func() { // not span.End alone, which would throw a panic anew
		if !returned {
			panicked(span)
		}

		span.End()
	}()

	err := t.inner.Transform(ctx, m, carrying(ctx, emit))
	returned = true

	t.fail(span, err)

	return err
}

// carrying has all that is emitted carry the span of ctx on.
func carrying(ctx context.Context, emit pipeline.Emit) pipeline.Emit {
	return func(out *pipeline.Message) error {
		if out != nil {
			carry(ctx, out)
		}

		return emit(out)
	}
}

type gather struct {
	life
	step

	inner pipeline.BatchTransform
}

// TransformBatch calls the gather within a span for each message that is followed. What comes out goes on in the trace of the
// first.
func (g *gather) TransformBatch(ctx context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	return g.around(ctx, batch, func(ctx context.Context, spans []trace.Span) error {
		if i := slices.IndexFunc(spans, func(s trace.Span) bool { return s != nil }); i >= 0 {
			emit = carrying(trace.ContextWithSpan(ctx, spans[i]), emit)
		}

		return g.inner.TransformBatch(ctx, batch, emit)
	})
}

type sink struct {
	life
	step

	inner pipeline.Sink
}

// Unwrap returns the sink that is traced, for those who show what a job is made of.
func (s *sink) Unwrap() pipeline.Sink { return s.inner }

// Write calls the sink within a span for each message that is followed.
func (s *sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	return s.around(ctx, batch, func(ctx context.Context, spans []trace.Span) error {
		carried := batch

		for i, span := range spans {
			if span == nil {
				continue
			}

			if &carried[0] == &batch[0] {
				carried = slices.Clone(batch)
			}

			m := *batch[i] // the sink sees a copy that carries its span on; the message itself is the lane's
			carry(trace.ContextWithSpan(ctx, span), &m)
			carried[i] = &m
		}

		return s.inner.Write(ctx, carried)
	})
}

// around calls f with the spans over a batch, nil for messages that are not followed, and ends them.
func (s *step) around(
	ctx context.Context, batch []*pipeline.Message, f func(ctx context.Context, spans []trace.Span) error,
) error {
	var spans []trace.Span

	for i, m := range batch {
		if _, span := s.begin(ctx, m); span != nil {
			if spans == nil {
				spans = make([]trace.Span, len(batch))
			}

			spans[i] = span
		}
	}

	if spans == nil {
		return f(ctx, nil)
	}

	returned := false

	defer func() {
		for _, span := range spans {
			if span == nil {
				continue
			}

			if !returned {
				panicked(span)
			}

			span.End()
		}
	}()

	err := f(ctx, spans)
	returned = true

	partly, isPartly := errors.AsType[*pipeline.BatchError](err)

	for i, span := range spans {
		switch {
		case span == nil:
		case isPartly:
			s.fail(span, partly.Failed[i])
		default:
			s.fail(span, err)
		}
	}

	return err
}
