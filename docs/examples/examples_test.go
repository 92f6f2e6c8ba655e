// Package examples_test runs the examples as their README files tell a reader to.
package examples_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	// The command is built by these tests; what it is made of is named here so that a change of it has them run again.
	_ "github.com/millrace/millrace/cmd/millrace/cli"
	_ "github.com/millrace/millrace/plugins/standard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Fences of a README: commands for a shell, and the output that follows them.
var fences = regexp.MustCompile("(?s)```sh\n(.*?)```(?:\n+```(?:json|text)\n(.*?)```)?")

// TestExamplesDoWhatTheirReadmeSays runs the commands of each README in a copy of the folder and holds what they print
// against what the README shows; the order of lines may differ, since lanes and queues are worked on side by side.
func TestExamplesDoWhatTheirReadmeSays(t *testing.T) {
	t.Parallel()

	jobs, err := filepath.Glob("*/job.yaml")
	if err != nil || len(jobs) < len(needs()) {
		t.Fatalf("found %d jobs, error %v", len(jobs), err)
	}

	bin := build(t)

	for _, job := range jobs {
		folder := filepath.Dir(job)
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			continue // a module of its own, which has its own test
		}

		t.Run(folder, func(t *testing.T) {
			t.Parallel()

			w := setup(t, folder, bin)
			check := func(*testing.T) {}

			if start, ok := needs()[folder]; ok {
				check = start(t, w)
			}

			w.readme(t)
			check(t)

			w.sh(t, "millrace lint") // now that what the job names has been built

			if _, err := os.Stat(filepath.Join(w.dir, "job_test.yaml")); err == nil {
				w.sh(t, "millrace test job_test.yaml")
			}
		})
	}
}

// build builds the command, as it is and without what looks for races, under which modules are compiled for half a minute. It
// returns the folder that it is in.
func build(t *testing.T) string {
	t.Helper()

	bin := t.TempDir()

	c := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", bin, "../../cmd/millrace")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	return bin
}

// world is a copy of an example, in what looks like a clone of the repository.
type world struct {
	dir string
	env []string
}

func setup(t *testing.T, folder, bin string) *world {
	t.Helper()

	top, caches := t.TempDir(), shortDir(t)
	w := &world{dir: filepath.Join(top, "docs", "examples", folder)}

	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}

	// Python writes what it has compiled beside its modules, so these are copied, too.
	python := filepath.Join("plugins", "exec", "python")

	for to, from := range map[string]string{w.dir: folder, filepath.Join(top, python): filepath.Join(root, python)} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}

	for _, made := range []string{"data", "out"} { // by who has tried the example in its own folder
		if err := os.RemoveAll(filepath.Join(w.dir, made)); err != nil {
			t.Fatal(err)
		}
	}

	for _, link := range [][2]string{
		{filepath.Join(root, "go.mod"), filepath.Join(top, "go.mod")},
		{filepath.Join(root, "go.sum"), filepath.Join(top, "go.sum")},
		{filepath.Join(root, "plugins", "wasm"), filepath.Join(top, "plugins", "wasm")},
	} {
		if err := os.Symlink(link[0], link[1]); err != nil {
			t.Fatal(err)
		}
	}

	// Where the command has its sockets; the go command keeps what it has built where it always does.
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}

	w.env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_CACHE_HOME="+caches,
		"GOCACHE="+strings.TrimSpace(string(cache)))

	return w
}

// shortDir is a folder whose path is short enough for sockets.
func shortDir(t *testing.T) string {
	t.Helper()

	dir, err := os.MkdirTemp("", "m") //nolint:usetesting // the paths of t.TempDir are too long for sockets
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(dir) })

	return dir
}

// readme runs the commands of the README, fence by fence.
func (w *world) readme(t *testing.T) {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(w.dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}

	steps := fences.FindAllStringSubmatch(string(text), -1)
	if len(steps) == 0 {
		t.Error("the README has no commands")
	}

	for _, step := range steps {
		if got := w.sh(t, step[1]); step[2] != "" && sorted(got) != sorted(step[2]) {
			t.Errorf("%s\nprints\n%s\nand the README says\n%s", step[1], got, step[2])
		}
	}
}

func sorted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)

	return strings.Join(lines, "\n")
}

// sh runs commands of a shell, which must succeed, and returns what they print.
func (w *world) sh(t *testing.T, commands string) string {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	var out, errs strings.Builder

	c := exec.CommandContext(ctx, "sh", "-euc", commands)
	c.Dir, c.Env, c.Stdout, c.Stderr = w.dir, w.env, &out, &errs

	if err := c.Run(); err != nil {
		t.Fatalf("%s: %v\n%s%s", commands, err, out.String(), errs.String())
	}

	t.Logf("%s\n%s%s", commands, out.String(), errs.String())

	return out.String()
}
