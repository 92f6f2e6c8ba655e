package actors

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
)

// What tells a process of the binary with the planted bugs which one is meant, and what must be found.
const (
	plantedEnv      = "MILLRACE_PLANTED"
	plantedRulesEnv = "MILLRACE_PLANTED_RULES"
)

// plantedFile is added to each package that has bugs. Outside of this test the code is compiled without any of it: it costs
// the runtime nothing, not even a comparison, and the bugs are in the runtime itself and not in a model of it.
const plantedFile = `package %s

import "os"

var plantedName = os.Getenv("MILLRACE_PLANTED")

func plantedOne(planted bool) int {
	if planted {
		return 1
	}

	return 0
}
`

// A harness that finds nothing proves nothing. The compiler is given the sources of the runtime with a bug for every rule,
// each asleep until it is named; then the harness has to find each by the rule that it breaks.
func TestPlantedBugsAreCaught(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("it compiles the package once more")
	}

	bugs := plantedBugs()
	binary := plant(t, bugs)

	for _, bug := range bugs {
		t.Run(bug.name, func(t *testing.T) {
			t.Parallel()

			c := exec.CommandContext(t.Context(), binary, "-test.run=^TestPlantedChild$", "-test.v", "-test.timeout=2m")
			c.Env = append(os.Environ(), plantedEnv+"="+bug.name, plantedRulesEnv+"="+strings.Join(bug.rules, ","))

			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("no rule of %v was seen broken: %v\n%s", bug.rules, err, out)
			}

			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "caught") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

// The documents say which rule catches which bug.
func TestPlantedBugsAreDocumented(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, bug := range plantedBugs() {
		if row := fmt.Sprintf("\n| %s | %s |\n", bug.name, strings.Join(bug.rules, " or ")); !strings.Contains(string(text), row) {
			t.Errorf("docs/guarantees.md has no line %q", strings.TrimSpace(row))
		}
	}
}

// plant compiles this package's tests with all bugs, through the compiler's overlay: no file of the checkout changes.
func plant(t *testing.T, bugs []plantedBug) (binary string) {
	t.Helper()

	dir := t.TempDir()
	sources, replaced := make(map[string]string), make(map[string]string)

	for _, bug := range bugs {
		path, err := filepath.Abs(bug.file)
		if err != nil {
			t.Fatal(err)
		}

		if sources[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}

			sources[path] = string(text)
			folder := filepath.Dir(path)
			sources[filepath.Join(folder, "planted.go")] = fmt.Sprintf(plantedFile, filepath.Base(folder))
		}

		if n := strings.Count(sources[path], bug.was); n != 1 {
			t.Fatalf("%q: the place in %s is there %d times; the code has changed, so move the bug after it", bug.name, bug.file, n)
		}

		now := strings.ReplaceAll(bug.now, "PLANTED", fmt.Sprintf("(plantedName == %q)", bug.name))
		sources[path] = strings.Replace(sources[path], bug.was, now, 1)
	}

	for path, text := range sources {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", len(replaced)))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		replaced[path] = file
	}

	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}

	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		t.Fatal(err)
	}

	binary = filepath.Join(dir, "planted.test")

	c := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", file, "-o", binary, ".")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("the planted bugs do not compile: %v\n%s", err, out)
	}

	return binary
}

// TestPlantedChild is not a test of its own: it looks for one planted bug, seed after seed, until it has found it.
func TestPlantedChild(t *testing.T) {
	t.Parallel()

	rules := strings.Split(os.Getenv(plantedRulesEnv), ",")
	if rules[0] == "" {
		t.Skip("it is run by TestPlantedBugsAreCaught")
	}

	const most = 1000

	for seed := range uint64(most) {
		var broken []string

		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, seed)
			w.play()
			broken = w.broken
		})

		for _, line := range broken {
			if rule, _, _ := strings.Cut(line, ":"); slices.Contains(rules, rule) {
				t.Logf("caught by seed %d: %s", seed, line)

				return
			}
		}
	}

	t.Fatalf("%d seeds have seen nothing", most)
}
