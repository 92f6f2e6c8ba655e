package embedded

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// flakyDisk fails the writes that its owner picks by number.
type flakyDisk struct {
	*errorfs.FS

	memory *vfs.MemFS
	writes atomic.Int64
	// from and to bound the numbers of the writes that fail.
	from, to atomic.Int64
}

func newFlakyDisk() *flakyDisk {
	d := &flakyDisk{memory: vfs.NewCrashableMem()}
	d.mend()
	d.FS = errorfs.Wrap(d.memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
			return nil
		}

		if n := d.writes.Add(1); n < d.from.Load() || n >= d.to.Load() {
			return nil
		}

		return &noSpaceError{op.Path}
	}))

	return d
}

func (d *flakyDisk) mend() { d.from.Store(1 << 60) }

func (d *flakyDisk) breakAt(from, writes int64) {
	d.to.Store(from + writes)
	d.from.Store(from)
}

type noSpaceError struct{ path string }

func (e *noSpaceError) Error() string { return "writing " + e.path + ": " + syscall.ENOSPC.Error() }
func (e *noSpaceError) Unwrap() error { return syscall.ENOSPC }

const flakyDir = "/broker"

// work publishes batches until one is refused, and returns the bodies that were acknowledged, and what the refusal was.
func work(t *testing.T, disk vfs.FS) (acknowledged []string, refusal error) {
	t.Helper()

	b, err := Open(Options{Dir: flakyDir, FS: disk})
	if err != nil {
		return nil, err
	}

	defer func() {
		if err := b.Close(); err != nil && refusal == nil {
			refusal = err
		}
	}()

	if err := b.CreateTopic(t.Context(), "t", 2); err != nil {
		return nil, err
	}

	const batches, perBatch = 60, 20

	padding := strings.Repeat("x", 1000)

	for batch := range batches {
		messages := make([]*pipeline.Message, perBatch)
		for i := range messages {
			messages[i] = &pipeline.Message{Body: fmt.Appendf(nil, "%d-%d %s", batch, i, padding)}
		}

		if err := b.Publish(t.Context(), "t", messages); err != nil {
			return acknowledged, err
		}

		acknowledged = append(acknowledged, bodies(messages)...)
	}

	return acknowledged, nil
}

// TestRefusedWriteLosesNothing fails the writes of a run in turn, once for a moment and once for good: the process lives
// on, the broker says what happened, and the directory has all that was acknowledged, also after a power cut.
func TestRefusedWriteLosesNothing(t *testing.T) {
	t.Parallel()

	whole := newFlakyDisk()
	if _, err := work(t, whole); err != nil {
		t.Fatal(err)
	}

	writes := whole.writes.Load()

	const step = 6 // every write would take a minute with the race detector

	seed := time.Now().UnixNano()
	t.Logf("seed %d, %d writes", seed, writes)

	for first := 1 + seed%step; first <= writes; first += step {
		for _, n := range []int64{1, 1 << 40} {
			disk := newFlakyDisk()
			disk.breakAt(first, n)

			acknowledged, err := work(t, disk)
			if err == nil { // a file that nobody needs could not be closed, or the like
				continue
			}

			if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), flakyDir) {
				t.Errorf("write %d fails %d times: %v, want a full disk, with the name of the directory", first, n, err)
			}

			disk.mend()
			cut := disk.memory.CrashClone(vfs.CrashCloneCfg{})
			wantStored(t, fmt.Sprintf("write %d fails %d times", first, n), disk, acknowledged)
			wantStored(t, fmt.Sprintf("write %d fails %d times, then a power cut", first, n), cut, acknowledged)
		}
	}
}

// wantStored opens the broker and checks that it has each acknowledged message once, and no other twice.
func wantStored(t *testing.T, what string, disk vfs.FS, acknowledged []string) {
	t.Helper()

	w := openWorld(t, Options{Dir: flakyDir, FS: disk})
	defer w.close()

	w.topic("t", 2)
	m := w.join("g", "t")
	seen := make(map[string]int)

	for _, l := range m.await("t", 2) {
		for _, body := range bodies(m.all(l)) {
			seen[body]++
		}
	}

	for _, body := range acknowledged {
		if seen[body] != 1 {
			t.Errorf("%s: the acknowledged %.10q is there %d times", what, body, seen[body])

			return
		}
	}

	if twice := slices.Sorted(maps.Values(seen)); len(twice) > 0 && twice[len(twice)-1] != 1 {
		t.Errorf("%s: a message is there %d times", what, twice[len(twice)-1])
	}
}

// TestFailedBrokerSaysSo checks every call after a failure of the disk, also those that were waiting.
func TestFailedBrokerSaysSo(t *testing.T) {
	t.Parallel()

	disk := newFlakyDisk()
	w := &world{t: t}
	w.open(Options{Dir: flakyDir, FS: disk})
	w.topic("t", 1)
	w.publishN("t", 3)

	m := w.join("g", "t")
	l := m.one("t")
	message := m.pull(l, 0, 1).Messages[0]
	limit := consumer.Limit{Messages: 1, Bytes: 1}
	waiting := make(chan error, 2)

	go func() {
		_, err := m.Pull(t.Context(), l, 3, limit)
		waiting <- err
	}()

	go func() {
		_, err := m.Assigned(t.Context(), m.assigned.Generation)
		waiting <- err
	}()

	disk.breakAt(disk.writes.Load()+1, 1)

	calls := map[string]func() error{
		"Publish":     func() error { return w.Publish(t.Context(), "t", []*pipeline.Message{{}}) },
		"CreateTopic": func() error { return w.CreateTopic(t.Context(), "u", 1) },
		"Commit":      func() error { return m.Commit(t.Context(), l, consumer.Checkpoint{Next: 1}) },
		"SendBack":    func() error { return m.SendBack(t.Context(), message, 0) },
		"DeadLetter":  func() error { return m.DeadLetter(t.Context(), message, consumer.Cause{}) },
		"Pull":        func() error { _, err := m.Pull(t.Context(), l, 0, limit); return err },
		"Stored":      func() error { _, err := m.Stored(t.Context(), l.Queue); return err },
		"Find":        func() error { _, err := m.Find(t.Context(), l.Queue, pipeline.First); return err },
		"Describe":    func() error { _, err := w.Describe(t.Context()); return err },
		"Join": func() error {
			_, err := w.Join(t.Context(), consumer.Subscription{Group: "h", Topics: []string{"t"}})

			return err
		},
		"a waiting call":       func() error { return <-waiting },
		"another waiting call": func() error { return <-waiting },
		"Close":                w.Close,
	}

	for _, name := range []string{
		"Publish", "Publish", "a waiting call", "another waiting call", "CreateTopic", "Commit", "SendBack", "DeadLetter",
		"Pull", "Stored", "Find", "Describe", "Join", "Close",
	} {
		if err := calls[name](); !errors.Is(err, ErrFailed) || !errors.Is(err, ErrDiskFull) {
			t.Errorf("%s: %v, want ErrFailed and ErrDiskFull", name, err)
		}
	}

	if err := w.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
}

// TestPublishLeavesSpaceFree fills the disk and frees it again under an open broker.
func TestPublishLeavesSpaceFree(t *testing.T) {
	t.Parallel()

	disk := vfs.NewMem()
	w := openWorld(t, Options{Dir: flakyDir, FS: disk, KeepFree: 1000})
	w.topic("t", 1)
	w.publishN("t", 1)

	m := w.join("g", "t")
	l := m.one("t")

	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 10000, AvailBytes: 999})

	err := w.Publish(t.Context(), "t", []*pipeline.Message{{}})
	if !errors.Is(err, ErrDiskFull) || errors.Is(err, ErrFailed) || !strings.Contains(err.Error(), flakyDir) {
		t.Errorf("Publish on a full disk: %v, want ErrDiskFull and the directory", err)
	}

	m.commit(l, consumer.Checkpoint{Next: 1}) // small, and makes room in the end
	disk.TestingSetDiskUsage(vfs.DiskUsage{TotalBytes: 10000, AvailBytes: 1000})
	w.publishN("t", 1)
}
