package mentions

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/pluginstest"
)

// TestBadDays puts the plugin through what every plugin must bear: panics, refusals, slow and hung stages behind it, huge and
// senseless bodies, several lanes at once.
func TestBadDays(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	if err := Register(&r); err != nil {
		t.Fatal(err)
	}

	// The suite's messages have bodies such as {"n":1}.
	pluginstest.Test(t, pluginstest.Of(t, &r, plugins.Transform, "mentions", "n", plugins.Env{}))
}

// TestWhatPasses holds the plugin to what it is for.
func TestWhatPasses(t *testing.T) {
	t.Parallel()

	fire, water := pipelinetest.Message("fire!"), pipelinetest.Message("water")

	var o Options
	if err := plugins.Decode("fire", &o); err != nil { // as a job file would give them
		t.Fatal(err)
	}

	fresh := func() (pipeline.Transform, error) { return &Transform{options: o}, nil }

	pipelinetest.TestTransform(t, fresh,
		pipelinetest.Case{Name: "mentioned", In: fire, Want: []*pipeline.Message{fire}},
		pipelinetest.Case{Name: "not mentioned", In: water},
	)
}
