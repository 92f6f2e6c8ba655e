package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/cmd/millrace/cli"
)

// root is the repository as these tests see it.
const root = "../../.."

// TestWhatNewPluginWritesPassesItsTests lets the go command judge the packages. They lie inside of the module, so that nothing is
// fetched, and where no pattern of the go command finds them.
func TestWhatNewPluginWritesPassesItsTests(t *testing.T) {
	t.Parallel()

	w := setup(t)

	if err := os.MkdirAll(root+"/out", 0o750); err != nil {
		t.Fatal(err)
	}

	dir, err := os.MkdirTemp(root+"/out", "_plugins-") //nolint:usetesting // it has to lie inside of the module
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	var packages []string

	for _, kind := range []string{"transform", "gather", "sink"} {
		made := filepath.Join(dir, "my"+kind)
		packages = append(packages, "./"+filepath.ToSlash(made))

		said := w.ok("", "new", "plugin", made, "--kind", kind)
		if !strings.Contains(said, "wrote "+made+"/my"+kind+"_test.go\n") ||
			!strings.Contains(said, `import "github.com/millrace/millrace/out/`+filepath.Base(dir)+"/my"+kind+"\"\n") {
			t.Errorf("it says\n%s", said)
		}
	}

	if out := tool(t, "gofmt", "-l", dir); out != "" {
		t.Errorf("not formatted:\n%s", out)
	}

	tool(t, "go", append([]string{"vet"}, packages...)...)
	tool(t, "go", append([]string{"test"}, packages...)...)
}

// tool runs a program of the Go tools, with the caches of whoever runs this test.
func tool(t *testing.T, name string, args ...string) string {
	t.Helper()

	c := exec.CommandContext(t.Context(), name, args...)

	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "XDG_CACHE_HOME=") {
			c.Env = append(c.Env, variable)
		}
	}

	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", strings.Join(c.Args, " "), err, out)
	}

	return string(out)
}

// TestTheExampleIsWhatNewPluginWrites holds docs/examples/plugin, of which docs/plugins.md tells, to the command.
func TestTheExampleIsWhatNewPluginWrites(t *testing.T) {
	t.Parallel()

	w := setup(t)
	w.ok("", "new", "plugin", w.path("mentions"))

	for _, file := range []string{"mentions.go", "mentions_test.go"} {
		want, err := os.ReadFile(w.path("mentions/" + file))
		if err != nil {
			t.Fatal(err)
		}

		got, err := os.ReadFile(root + "/docs/examples/plugin/mentions/" + file)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("docs/examples/plugin/mentions/%s is not what the command writes: %v", file, err)
		}
	}
}

func TestNewPluginRefusesWhatCouldNotBeBuilt(t *testing.T) {
	t.Parallel()

	w := setup(t)

	for _, args := range [][]string{
		{"Mentions"}, {"go"}, {"my-plugin"}, {"1st"}, {"."}, {""}, {w.path("x"), "--kind", "source"}, {}, {"a", "b"},
	} {
		if c := w.do("", append([]string{"new", "plugin"}, args...)...); c.code != cli.ExitUsage {
			t.Errorf("%q: exit code %d\n%s", args, c.code, c.err)
		}
	}

	w.ok("", "new", "plugin", w.path("x"))

	if c := w.do("", "new", "plugin", w.path("x")); c.code != cli.ExitFailed || !strings.Contains(c.err, "x.go is there already") {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}

	if c := w.do("", "new", "plugins"); c.code != cli.ExitUsage || !strings.Contains(c.err, `did you mean "plugin"?`) {
		t.Errorf("exit code %d\n%s", c.code, c.err)
	}
}
