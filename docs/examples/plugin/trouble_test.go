package main

import (
	"os"
	"strconv"
	"testing"

	"example.com/mill/mentions"

	"github.com/millrace/millrace/actors/actorstest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// TestTheJobLosesNothingInTrouble runs the job file twenty times while nearly everything goes wrong.
func TestTheJobLosesNothingInTrouble(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	for _, register := range []func(*plugins.Registry) error{standard.Register, mentions.Register} {
		if err := register(&r); err != nil {
			t.Fatal(err)
		}
	}

	text, err := os.ReadFile("job.yaml")
	if err != nil {
		t.Fatal(err)
	}

	file, err := jobfile.Parse("job.yaml", text, &r, jobfile.Variables{})
	if err != nil {
		t.Fatal(err)
	}

	build := func(env plugins.Env) (pipeline.Job, error) {
		return file.Jobs[0].BuildWith(env, func(jobfile.SinkUse) pipeline.Sink { return pipeline.Discard })
	}

	actorstest.Run(t, build, actorstest.Plan{
		Message: func(n int) *pipeline.Message {
			return &pipeline.Message{Key: strconv.Itoa(n % 5), Body: []byte([]string{"fire", "water"}[n%2])}
		},
		Check: func(t *testing.T, result *actorstest.Result) {
			t.Helper()

			for n, end := range result.Ends {
				if fire := n%2 == 0; end.Dead || fire != (end.Writes > 0) {
					t.Errorf("message %d: %+v", n, end)
				}
			}
		},
	})
}
