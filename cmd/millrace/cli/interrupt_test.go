package cli_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

const brokenJob = `
name: broken
broker: { embedded: DIR/data }
source: { topic: in }
channels:
  work: { sink: { broken: {} } }
`

// broken is a sink that is busy until it is stopped, and cannot be closed in order.
type broken struct{ called chan struct{} }

func (b broken) Write(ctx context.Context, _ []*pipeline.Message) error {
	close(b.called)
	<-ctx.Done()

	return ctx.Err()
}

func (b broken) Close() error { return errors.New("out of order") }

func TestASecondInterruptIsOneWhateverTheSinkSays(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "topics", "create", "in", "--queues", "1")
	w.ok("x\n", "produce", "in")

	sink := broken{called: make(chan struct{})}
	w.plugins = func(r *plugins.Registry) error {
		return plugins.AddSink(r, "broken", plugins.Doc{Summary: "Cannot be closed."},
			func(plugins.Env, noOptions) (pipeline.Sink, error) { return sink, nil })
	}

	run := w.start("run", w.write("job.yaml", brokenJob))

	<-sink.called
	run.interrupt()
	run.err.await(t, "draining")
	run.interrupt()

	if code := run.end(); code != cli.ExitInterrupted || !strings.Contains(run.err.String(), "out of order") {
		t.Errorf("exit code %d, want %d\n%s", code, cli.ExitInterrupted, run.err)
	}
}
