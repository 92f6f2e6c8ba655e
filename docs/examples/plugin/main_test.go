package main

import (
	"os"
	"path/filepath"
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
		mill(t, "", args...)
	}
}

// TestTheJobRuns does what the tutorial does last, in a folder of its own: the one of the process, so it runs alone.
func TestTheJobRuns(t *testing.T) {
	job, err := filepath.Abs("job.yaml")
	if err != nil {
		t.Fatal(err)
	}

	t.Chdir(t.TempDir())
	mill(t, "", "topics", "create", "reports")
	mill(t, "the house is on fire\nall is well\n", "produce", "reports")
	mill(t, "", "run", "--until-end", job)

	got, err := os.ReadFile(filepath.Join("out", "fires.txt"))
	if err != nil || string(got) != "the house is on fire\n" {
		t.Errorf("the file holds %q, error %v", got, err)
	}
}

// mill runs the command with an input; it must succeed.
func mill(t *testing.T, input string, args ...string) {
	t.Helper()

	var said strings.Builder

	command := cli.Command{
		Register: []func(*plugins.Registry) error{standard.Register, mentions.Register},
		In:       strings.NewReader(input), Out: &said, Err: &said, Variables: jobfile.Variables{},
	}

	if code := command.Run(t.Context(), args...); code != cli.ExitOK {
		t.Errorf("mill %s: exit code %d\n%s", strings.Join(args, " "), code, said.String())
	}
}
