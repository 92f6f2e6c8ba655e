package tracing

import (
	"context"
	"maps"
	"math/rand/v2"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/millrace/millrace/pipeline"
)

// traceparent is the property that carries a trace.
const traceparent = "traceparent"

// step is a place of a job where messages are worked on.
type step struct {
	options             Options
	job, channel, stage string
	// entry: messages come into the job here.
	entry bool
}

// begin begins a span over a message. Nil is for one that is not followed.
//
//nolint:ireturn // as tracers do
func (s *step) begin(ctx context.Context, m *pipeline.Message) (context.Context, trace.Span) {
	if m.Props[traceparent] == "" {
		if !s.entry || rand.Float64() >= s.options.Share {
			return ctx, nil
		}
	} else {
		carried := propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(m.Props))
		if !trace.SpanContextFromContext(carried).IsSampled() {
			return ctx, nil // by the decision of whoever began it, or since it makes no sense
		}

		ctx = carried
	}

	kind := trace.SpanKindInternal
	if s.entry {
		kind = trace.SpanKindConsumer
	}

	// The names under "messaging" are those of OpenTelemetry's conventions.
	return s.options.Tracer.Start(ctx, s.channel+"/"+s.stage, //nolint:spancheck // the caller ends it
		trace.WithSpanKind(kind), trace.WithAttributes(
			attribute.String("millrace.job", s.job),
			attribute.String("millrace.channel", s.channel),
			attribute.String("millrace.stage", s.stage),
			attribute.Int("millrace.delivery", m.Origin.Delivery),
			attribute.String("messaging.message.id", m.ID),
			attribute.String("messaging.destination.name", m.Topic),
			attribute.String("messaging.destination.partition.id", m.Origin.Queue.String()),
			attribute.Int64("millrace.offset", int64(m.Origin.Offset)),
		))
}

// carry has a message carry the span of a context on. Its properties may be shared with a copy, so they are not changed in place.
func carry(ctx context.Context, m *pipeline.Message) {
	m.Props = maps.Clone(m.Props)
	if m.Props == nil {
		m.Props = make(map[string]string, 1)
	}

	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(m.Props))
}

// fail marks a span as failed by an error, which may be nil. That of a later stage, which comes back through those before it, is
// no failure of theirs.
func (s *step) fail(span trace.Span, err error) {
	if err == nil {
		return
	}

	if _, later := err.(*pipeline.StageError); later { //nolint:errorlint // as pipeline.AsStageError tells them apart
		return
	}

	span.SetStatus(codes.Error, s.options.Redact(err.Error()))
}

// panicked marks a span over a call that has not returned.
func panicked(span trace.Span) { span.SetStatus(codes.Error, "panic") }
