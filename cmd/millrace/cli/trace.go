package cli

import (
	"context"
	"fmt"
	"os"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/millrace/millrace/pipeline/tracing"
)

// collectorURL is where spans go when the environment names no other place: an OpenTelemetry collector on this machine.
const collectorURL = "http://127.0.0.1:4318"

// traceJobs has the session's jobs traced, and returns the function that sends the last spans.
func (s *session) traceJobs(ctx context.Context) (stop func(context.Context) error, err error) {
	var options []otlptracehttp.Option
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") == "" {
		options = append(options, otlptracehttp.WithEndpointURL(collectorURL))
	}

	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("run: --trace: %w", err)
	}

	// What the environment says of the service comes last, and prevails.
	about, err := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "millrace")), resource.WithFromEnv())
	if err != nil {
		return nil, fmt.Errorf("run: --trace: %w", err)
	}

	var once sync.Once

	// The process is the command's own: what the exporter cannot send it tells this handler, which there is one of.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		once.Do(func() { s.screen.notef("traces cannot be sent: %v; OTEL_EXPORTER_OTLP_ENDPOINT says where to", err) })
	}))

	provider := trace.NewTracerProvider(trace.WithBatcher(exporter), trace.WithResource(about))
	s.tracing = tracing.Options{
		Tracer: provider.Tracer("github.com/millrace/millrace"), Share: s.share, Redact: s.redact.Redact,
	}

	return provider.Shutdown, nil
}
