package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

func TestABodyIsALineUnchanged(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{}).open(t)

	if err := w.sink.Write(t.Context(), batchOf(`{"b": 1,  "a": 2}`, `"x"`)); err != nil {
		t.Fatal(err)
	}

	if err := w.sink.Write(t.Context(), nil); err != nil {
		t.Fatal(err)
	}

	if err := w.sink.Write(t.Context(), batchOf("[3]")); err != nil {
		t.Fatal(err)
	}

	const want = `{"b": 1,  "a": 2}` + "\n\"x\"\n[3]\n"

	w.holds(t, want)

	if got := w.sink.Stats(); got != (Stats{Lines: 3, Bytes: int64(len(want)), Opened: 1}) {
		t.Errorf("stats %+v", got)
	}
}

func TestWhatIsNoLineIsRejectedAlone(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{}).open(t)
	err := w.sink.Write(t.Context(), batchOf("1", "{\n}", "2", "{", "", "3 3", "4"))

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok {
		t.Fatalf("the error is %v, want a batch error", err)
	}

	for i := range 7 {
		bad := i == 1 || i >= 3 && i <= 5
		if err := failures.Failed[i]; (err != nil) != bad {
			t.Errorf("message %d: %v", i, err)
		} else if bad && (!pipeline.IsRejected(err) || !errors.Is(err, ErrNotALine)) {
			t.Errorf("message %d fails with %v, want a rejected ErrNotALine", i, err)
		}
	}

	w.holds(t, "1\n2\n4\n")

	if got := w.sink.Stats().Lines; got != 3 {
		t.Errorf("%d lines counted, want 3", got)
	}
}

func TestLinesMayBeAnyText(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Format: FormatText}).open(t)
	err := w.sink.Write(t.Context(), batchOf("the house is on fire", "two\nlines", `{"a":`))

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(failures.Failed) != 1 || !errors.Is(failures.Failed[1], ErrNotALine) || !pipeline.IsRejected(failures.Failed[1]) {
		t.Errorf("the error is %v, want the second message rejected", err)
	}

	w.holds(t, "the house is on fire\n{\"a\":\n")
}

func TestAnUnfinishedLastLineIsCutOffOnOpen(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 150<<10)

	for name, c := range map[string]struct{ before, after string }{
		"empty":             {"", ""},
		"complete":          {"1\n2\n", "1\n2\n"},
		"torn":              {"1\n2\n{\"a\":", "1\n2\n"},
		"nothing else":      {"{\"a\":", ""},
		"longer than chunk": {"1\n" + long, "1\n"},
		"break at chunk":    {"1\n" + long[:64<<10], "1\n"},
		"nothing but long":  {long, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			path := filepath.Join(t.TempDir(), "lines.jsonl")
			if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}

			w := setup(t, Options{Path: path}).open(t)
			torn := int64(len(c.before) - len(c.after))

			if got := w.sink.Stats().Torn; got != torn {
				t.Errorf("%d bytes counted as torn, want %d", got, torn)
			}

			if got := w.logs.FilterField(zap.Int64("bytes", torn)).Len(); (got == 1) != (torn > 0) {
				t.Errorf("%d log lines about %d torn bytes", got, torn)
			}

			if err := w.sink.Write(t.Context(), batchOf("9")); err != nil {
				t.Fatal(err)
			}

			w.holds(t, c.after+"9\n")
		})
	}
}

func TestAFailedBatchLeavesNothingBehind(t *testing.T) {
	t.Parallel()

	for name, fault := range map[string]faultyDisk{
		"torn write":                 {tear: true},
		"sync":                       {sync: syscall.EIO},
		"torn write and no cut":      {tear: true, truncate: syscall.EIO},
		"sync and no cut":            {sync: syscall.EIO, truncate: syscall.EIO},
		"torn write, whatever fails": {tear: true, sync: syscall.EIO, truncate: syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := setup(t, Options{}).open(t)
			if err := w.sink.Write(t.Context(), batchOf("1")); err != nil {
				t.Fatal(err)
			}

			fault.handle = w.disk.handle
			*w.disk = fault

			for range 2 {
				err := w.sink.Write(t.Context(), batchOf("22", "33"))
				if failures, ok := errors.AsType[*pipeline.BatchError](err); !ok || len(failures.Failed) != 2 || pipeline.IsRejected(failures.Failed[0]) {
					t.Fatalf("the error is %v, want one for each message, none rejected", err)
				}
			}

			if fault.truncate == nil {
				w.holds(t, "1\n")
			}

			*w.disk = faultyDisk{handle: fault.handle}

			if err := w.sink.Write(t.Context(), batchOf("22", "33")); err != nil {
				t.Fatal(err)
			}

			w.holds(t, "1\n22\n33\n")

			if got := w.sink.Stats(); got.Lines != 3 || got.Bytes != 8 {
				t.Errorf("stats %+v count a failed batch", got)
			}
		})
	}
}

// What a failed batch has left may look like whole lines, which the next run would take for written.
func TestCloseCutsOffWhatAFailedBatchHasLeft(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{}).open(t)
	w.write(t, "1")

	w.disk.tear, w.disk.truncate = true, syscall.EIO

	if err := w.sink.Write(t.Context(), batchOf("22", "33")); !errors.Is(cause(err), syscall.ENOSPC) {
		t.Fatalf("the error is %v", err)
	}

	w.disk.tear, w.disk.truncate = false, nil
	w.close(t)
	w.holds(t, "1\n")
}

func TestSyncFollowsThePolicy(t *testing.T) {
	t.Parallel()

	for policy, want := range map[Fsync][2]int{FsyncBatch: {2, 3}, FsyncNever: {0, 1}} {
		w := setup(t, Options{Fsync: policy}).open(t)

		for range 2 {
			if err := w.sink.Write(t.Context(), batchOf("1")); err != nil {
				t.Fatal(err)
			}

			if policy == FsyncBatch && w.disk.unsafe > 0 {
				t.Errorf("a batch is said to be durable, and a power cut takes %d bytes of it", w.disk.unsafe)
			}
		}

		written := w.disk.syncs

		if err := w.sink.Close(); err != nil {
			t.Fatal(err)
		}

		if got := [2]int{written, w.disk.syncs}; got != want {
			t.Errorf("policy %d: syncs after two batches and after Close %v, want %v", policy, got, want)
		}

		if w.disk.unsafe > 0 {
			t.Errorf("policy %d: after Close a power cut takes %d bytes", policy, w.disk.unsafe)
		}
	}
}

func TestLanesShareTheFile(t *testing.T) {
	t.Parallel()

	const lanes, batches = 8, 20

	w := setup(t, Options{Fsync: FsyncNever}).open(t)

	var wg sync.WaitGroup
	for lane := range lanes {
		wg.Go(func() {
			for n := range batches {
				line := fmt.Sprintf(`{"lane":%d,"n":%d}`, lane, n)
				if err := w.sink.Write(t.Context(), batchOf(line, line)); err != nil {
					t.Error(err)
				}
			}
		})
	}

	wg.Wait()

	text, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}

	seen := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		seen[line]++
	}

	for lane := range lanes {
		for n := range batches {
			if line := fmt.Sprintf("{\"lane\":%d,\"n\":%d}\n", lane, n); seen[line] != 2 {
				t.Errorf("%q is there %d times, want 2", line, seen[line])
			}
		}
	}
}

func TestASecondWriterIsNoticed(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{}).open(t)

	if err := os.WriteFile(w.path, []byte("foreign\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	err := w.sink.Write(t.Context(), batchOf("1"))
	if err == nil || pipeline.IsRejected(cause(err)) || !strings.Contains(err.Error(), "somebody else writes to it") {
		t.Errorf("the error is %v", err)
	}

	w.holds(t, "foreign\n")
}

func TestASinkIsOpenBetweenOpenAndClose(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{})

	if err := w.sink.Write(t.Context(), batchOf("1")); !errors.Is(err, errClosed) {
		t.Errorf("before Open: %v", err)
	}

	w.open(t)

	if err := w.sink.Open(t.Context()); err == nil {
		t.Error("opening twice is no error")
	}

	for range 2 {
		if err := w.sink.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}

	if err := w.sink.Write(t.Context(), batchOf("1")); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}

	w.open(t)

	if err := w.sink.Write(t.Context(), batchOf("2")); err != nil {
		t.Error(err)
	}

	w.holds(t, "2\n")
}

func TestWaitingForTheTurnHeedsTheContext(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{}).open(t)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	w.sink.turn <- struct{}{}

	err := w.sink.Write(ctx, batchOf("1"))

	w.sink.give()

	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

func TestImpossiblePathsAreRefused(t *testing.T) {
	t.Parallel()

	if _, err := New(Options{}, nil); err == nil {
		t.Error("no path is no error")
	}

	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")

	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{folder, filepath.Join(plain, "below", "x.jsonl")} {
		sink, err := New(Options{Path: path}, nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := sink.Open(t.Context()); err == nil || !strings.Contains(err.Error(), plain[:len(folder)]) {
			t.Errorf("opening %s: %v", path, err)
		}
	}
}

// TestCountsDoNotWait asks for the counts while a call that may hang has the turn.
func TestCountsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		sink, err := New(Options{Path: filepath.Join(t.TempDir(), "out.jsonl")}, nil)
		if err != nil {
			t.Fatal(err)
		}

		if err := errors.Join(sink.Open(t.Context()), sink.Write(t.Context(), []*pipeline.Message{{Body: []byte("1")}})); err != nil {
			t.Fatal(err)
		}

		if err := sink.take(t.Context()); err != nil {
			t.Fatal(err)
		}

		if got := sink.Meter()["lines"]; got != 1 { // a bubble in which nobody goes on fails the test
			t.Errorf("%d lines", got)
		}

		sink.give()

		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	})
}
