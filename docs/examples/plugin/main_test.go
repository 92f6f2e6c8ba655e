package main

import (
	"strings"
	"testing"

	"example.com/mill/mentions"

	"github.com/millrace/millrace/cmd/millrace/cli"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// TestTheJobDoesWhatIsExpectedOfIt runs what `mill lint` and `mill test job_test.yaml` run.
func TestTheJobDoesWhatIsExpectedOfIt(t *testing.T) {
	t.Parallel()

	for _, args := range [][]string{{"lint", "job.yaml"}, {"test", "job_test.yaml"}} {
		var said strings.Builder

		mill := cli.Command{
			Register: []func(*plugins.Registry) error{standard.Register, mentions.Register},
			In:       strings.NewReader(""), Out: &said, Err: &said, Variables: jobfile.Variables{},
		}

		if code := mill.Run(t.Context(), args...); code != cli.ExitOK {
			t.Errorf("mill %s: exit code %d\n%s", strings.Join(args, " "), code, said.String())
		}
	}
}
