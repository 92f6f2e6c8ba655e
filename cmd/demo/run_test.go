package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/embedded"
)

// runIn runs the demo over a directory and returns its exit code and what it printed.
func runIn(ctx context.Context, t *testing.T, o options) (int, string) {
	t.Helper()

	if o.keep == "" {
		o.keep = t.TempDir()
	}

	o.repeat = max(o.repeat, 1)

	var said strings.Builder

	code, err := run(ctx, o, &screen{out: &said})
	if err != nil {
		t.Errorf("%v\n%s", err, said.String())
	}

	return code, said.String()
}

func holds(t *testing.T, said string, wants ...string) {
	t.Helper()

	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in\n%s", want, said)
		}
	}
}

func TestAPlainRunBalances(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	code, said := runIn(t.Context(), t, options{keep: dir, repeat: 2})
	if code != exitBalanced {
		t.Errorf("exit code %d", code)
	}

	const balance = "books balance: 3,414 published = 3,358 completed + 56 filtered + 0 dead-lettered"

	holds(t, said, balance, "archive.jsonl     3,358         0", "alerts.jsonl         78         0")

	// There is nothing left to do, and nothing is done again.
	code, said = runIn(t.Context(), t, options{keep: dir})
	if code != exitBalanced {
		t.Errorf("exit code of the second run %d", code)
	}

	holds(t, said, balance, "archive.jsonl     3,358         0", "quakes            0         0 ")
	ended(t, dir, true, true)
}

// ended checks which of the runs over a directory have drained.
func ended(t *testing.T, dir string, want ...bool) {
	t.Helper()

	r, err := openRuns(dir, 1, "")
	if err != nil {
		t.Fatal(err)
	}

	if got := r.Clean[:len(r.Clean)-1]; !slices.Equal(got, want) {
		t.Errorf("runs that have drained: %v, want %v", got, want)
	}
}

// TestARunWaitsForWhatIsDelayed has a time in which every queue is read to its end and messages wait to come again.
func TestARunWaitsForWhatIsDelayed(t *testing.T) {
	t.Parallel()

	code, said := runIn(t.Context(), t, options{panics: true, seed: 1, retryDelay: time.Second})
	if code != exitBalanced {
		t.Errorf("exit code %d", code)
	}

	holds(t, said, "books balance: 1,707 published = 1,679 completed + 28 filtered + 0 dead-lettered")
}

func TestARunInTroubleBalances(t *testing.T) {
	t.Parallel()

	code, said := runIn(t.Context(), t, options{
		poison: true, panics: true, hang: true, seed: 1, retryDelay: 10 * time.Millisecond,
	})
	if code != exitBalanced {
		t.Errorf("exit code %d", code)
	}

	holds(t, said,
		"books balance: 1,707 published = 1,676 completed + 28 filtered + 3 dead-lettered",
		"panics by -panic", "poisoned by -poison", "hangs in trouble",
		// 3 panics, 2 poisoned ones twice, 1 hung: 8 sent back and delivered again.
		"quakes        1,676        28              3        0          8            8       3           1",
	)
}

// TestAStoppedRunGoesOn stops a run in its middle, without losing or repeating anything.
func TestAStoppedRunGoesOn(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()

	s := &stopper{cancel: cancel}

	code, err := run(ctx, options{keep: dir, repeat: 20}, &screen{out: s})
	if code != exitStopped || err != nil {
		t.Fatalf("exit code %d, %v\n%s", code, err, s.said.String())
	}

	holds(t, s.said.String(), "draining", "this run, up to ^C", "stopped: ")

	code, said := runIn(t.Context(), t, options{keep: dir})
	if code != exitBalanced {
		t.Errorf("exit code %d", code)
	}

	holds(t, said, "books balance: 34,140 published = 33,580 completed + 560 filtered + 0 dead-lettered",
		"archive.jsonl    33,580         0", "summaries.jsonl  33,580         0", "alerts.jsonl        780         0")
}

// stopper is a screen whose watcher presses ^C at the first sign of life.
type stopper struct {
	cancel context.CancelFunc
	said   strings.Builder
}

func (s *stopper) Write(p []byte) (int, error) {
	s.cancel()

	return s.said.Write(p)
}

// TestAKilledRunGoesOn kills a real process, twice.
func TestAKilledRunGoesOn(t *testing.T) {
	t.Parallel()

	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	dir := t.TempDir()

	for n := range 2 {
		c := exec.CommandContext(t.Context(), self, "-keep", dir, "-slow", "-kill-after", "1s")
		c.Env = append(os.Environ(), asDemo+"=1")

		out, err := c.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Exited() {
			t.Fatalf("run %d was not killed: %v\n%s", n+1, err, out)
		}
	}

	code, said := runIn(t.Context(), t, options{keep: dir})
	if code != exitBalanced {
		t.Errorf("exit code %d", code)
	}

	holds(t, said, "books balance: 1,707 published = 1,679 completed + 28 filtered + 0 dead-lettered")

	if !strings.Contains(said, "goes on at") {
		t.Errorf("nothing was left of the killed runs:\n%s", said)
	}

	ended(t, dir, false, false, true)
}

func TestALossOnDiskIsFound(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if code, said := runIn(t.Context(), t, options{keep: dir}); code != exitBalanced {
		t.Fatalf("exit code %d\n%s", code, said)
	}

	archive := filepath.Join(dir, archiveFile)

	text, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}

	first, rest, _ := strings.Cut(string(text), "\n")

	for want, lines := range map[string]string{
		"archive.jsonl: 1 is missing: ":                                          rest,
		"archive.jsonl: 1 is there again without a redelivery or a killed run: ": string(text) + first + "\n",
	} {
		if err := os.WriteFile(archive, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}

		code, said := runIn(t.Context(), t, options{keep: dir})
		if code != exitUnbalanced {
			t.Errorf("exit code %d", code)
		}

		holds(t, said, "THE BOOKS DO NOT BALANCE:", want)
	}
}

func TestAJobThatCannotRunIsAnError(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, archiveFile), 0o750); err != nil {
		t.Fatal(err)
	}

	var said strings.Builder

	code, err := run(t.Context(), options{keep: dir, repeat: 1}, &screen{out: &said})
	if code != exitFailed || err == nil || strings.Count(err.Error(), archiveFile) != 1 {
		t.Errorf("exit code %d, %v", code, err)
	}
}

func TestADirectoryHasOneRunAtATime(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	broker, err := embedded.Open(embedded.Options{Dir: filepath.Join(dir, "broker")})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = broker.Close() })

	code, err := run(t.Context(), options{keep: dir, repeat: 1}, &screen{out: &strings.Builder{}})
	if code != exitFailed || !errors.Is(err, embedded.ErrInUse) {
		t.Errorf("exit code %d, %v", code, err)
	}
}
