package cli_test

import (
	"os"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

func TestWhatInitWritesIsRightAndRuns(t *testing.T) {
	t.Parallel()

	w := setup(t)
	dir := w.path("new")

	if got := w.ok("", "init", dir, "--name", "quakes"); !strings.Contains(got, "wrote "+dir+"/job.yaml\n") {
		t.Errorf("it says\n%s", got)
	}

	w.ok("", "lint", dir+"/job.yaml")

	if got := w.ok("", "test", dir+"/job_test.yaml"); !strings.Contains(got, "1 test, 0 failed") {
		t.Errorf("its test says\n%s", got)
	}

	// In a directory of its own, where it would be run.
	src, err := os.ReadFile(dir + "/job.yaml")
	if err != nil {
		t.Fatal(err)
	}

	file := w.write("job.yaml", strings.NewReplacer("./data", "DIR/data", "out/", "DIR/out/").Replace(string(src)))

	w.ok("", "topics", "create", "quakes")
	w.ok(`{"text": "fire"}`+"\n", "produce", "quakes", "--tag", "urgent")
	w.ok("", "run", "--until-end", file)

	if got := w.ok("", "consume", "quakes-alerts"); got != `{"text": "fire"}`+"\n" {
		t.Errorf("the alerts are %q", got)
	}

	if c := w.do("", "init", dir); c.code != cli.ExitFailed || !strings.Contains(c.err, "job.yaml is there already") {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}

	if c := w.do("", "init", dir, "--name", "a/b"); c.code != cli.ExitUsage {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}
