package admin_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"go.opentelemetry.io/otel/trace/noop"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/tracing"
	"github.com/millrace/millrace/plugins/discard"
)

// TestSinksAreNamedByTheirPlugin also when they are traced.
func TestSinksAreNamedByTheirPlugin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)
		plain := job(pipeline.Channel{Name: "work", Sink: &discard.Sink{}})

		r := w.run(w, tracing.Job(plain, tracing.Options{Tracer: noop.NewTracerProvider().Tracer("")}), actors.Options{})

		a := w.ask(admin.Options{}, http.MethodGet, "/api/v1/topology", "", nil)
		if !strings.Contains(a.Body.String(), `"sink":"discard"`) {
			t.Errorf("the topology is %s", a.Body)
		}

		r.Drain(-1)
	})
}

// keep is a sink that has a name.
func keep(context.Context, []*pipeline.Message) error { return nil }

type store struct{}

func (store) write(context.Context, []*pipeline.Message) error { return nil }

func TestSinksOfGoJobsAreNamedByTheirFunctions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t, 1)

		for want, sink := range map[string]pipeline.SinkFunc{
			"admin_test.keep":        keep,
			"admin_test.store.write": store{}.write,
			"admin_test.TestSinksOfGoJobsAreNamedByTheirFunctions": func(context.Context, []*pipeline.Message) error { return nil },
		} {
			j := job(pipeline.Channel{Name: "work", Sink: sink})
			j.Name = want
			r := w.run(w, j, actors.Options{})

			a := w.ask(admin.Options{}, http.MethodGet, "/api/v1/topology?job="+want, "", nil)
			if !strings.Contains(a.Body.String(), `"sink":"`+want+`"`) {
				t.Errorf("%s: the topology is %s", want, a.Body)
			}

			r.Drain(-1)
		}
	})
}
