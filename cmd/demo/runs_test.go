package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestADirectoryRemembersItsRuns(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	for n, want := range []struct {
		repeat, remembered int
		clean              bool
	}{{2, 2, true}, {1, 2, false}, {3, 3, true}, {1, 3, true}} {
		r, err := openRuns(dir, want.repeat, "")
		if err != nil {
			t.Fatal(err)
		}

		if r.current() != n+1 || r.Repeat != want.remembered {
			t.Errorf("run %d, feed %d times; want %d and %d", r.current(), r.Repeat, n+1, want.remembered)
		}

		if want.clean {
			if err := r.clean(); err != nil {
				t.Fatal(err)
			}
		}
	}

	r, err := openRuns(dir, 1, "")
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		from, to int
		want     bool
	}{{0, 0, false}, {1, 1, false}, {1, 2, false}, {1, 3, true}, {2, 3, true}, {3, 5, false}, {5, 6, true}, {6, 9, false}} {
		if got := r.killedSince(c.from, c.to); got != c.want {
			t.Errorf("killed between %d and %d: %t", c.from, c.to, got)
		}
	}
}

func TestADamagedDirectoryIsRefused(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "runs.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}

	if _, err := openRuns(dir, 1, ""); err == nil || !strings.Contains(err.Error(), "runs.json") {
		t.Errorf("the error is %v", err)
	}
}
