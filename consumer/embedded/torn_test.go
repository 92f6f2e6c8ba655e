//nolint:ireturn // a decorator passes files and errors on as they are
package embedded

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/consumer"
)

// tornDisk breaks in the two ways that leave something behind: a write of which only the first half arrives, and a sync
// after which nobody knows what has arrived.
type tornDisk struct {
	vfs.FS

	memory *vfs.MemFS
	// writes and syncs count; the write and the sync with these numbers fail, and every later one.
	writes, syncs       atomic.Int64
	failWrite, failSync atomic.Int64
}

func newTornDisk() *tornDisk {
	memory := vfs.NewCrashableMem()
	d := &tornDisk{FS: memory, memory: memory}
	d.mend()

	return d
}

func (d *tornDisk) mend() {
	d.failWrite.Store(1 << 60)
	d.failSync.Store(1 << 60)
}

// Create makes a file that breaks with its disk.
func (d *tornDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, c)

	return &tornFile{File: f, d: d}, err
}

// ReuseForWrite is Create on the blocks of an old file.
func (d *tornDisk) ReuseForWrite(old, name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.ReuseForWrite(old, name, c)

	return &tornFile{File: f, d: d}, err
}

type tornFile struct {
	vfs.File

	d *tornDisk
}

func (f *tornFile) Write(p []byte) (int, error) {
	if f.d.writes.Add(1) < f.d.failWrite.Load() {
		return f.File.Write(p)
	}

	n, err := f.File.Write(p[:len(p)/2])

	return n, errors.Join(err, syscall.EIO)
}

func (f *tornFile) failed() error {
	if f.d.syncs.Add(1) < f.d.failSync.Load() {
		return nil
	}

	return syscall.EIO
}

func (f *tornFile) Sync() error {
	if err := f.failed(); err != nil {
		return err
	}

	return f.File.Sync()
}

func (f *tornFile) SyncData() error {
	if err := f.failed(); err != nil {
		return err
	}

	return f.File.SyncData()
}

func (f *tornFile) SyncTo(length int64) (bool, error) {
	if err := f.failed(); err != nil {
		return false, err
	}

	return f.File.SyncTo(length)
}

// TestTornDiskLosesNothing breaks writes in the middle, and syncs, in turn: publishers and committers are told, and what they
// were told before is there afterwards, also when the power goes with the disk and takes along all that was not synced.
func TestTornDiskLosesNothing(t *testing.T) {
	t.Parallel()

	whole := newTornDisk()
	if _, err := work(t, whole); err != nil {
		t.Fatal(err)
	}

	const step = 9 // every one would take a minute with the race detector

	seed := time.Now().UnixNano()
	t.Logf("seed %d, %d writes, %d syncs", seed, whole.writes.Load(), whole.syncs.Load())

	for _, kind := range []struct {
		name string
		last int64
		fail func(*tornDisk) *atomic.Int64
	}{
		{"half of write", whole.writes.Load(), func(d *tornDisk) *atomic.Int64 { return &d.failWrite }},
		{"sync", whole.syncs.Load(), func(d *tornDisk) *atomic.Int64 { return &d.failSync }},
	} {
		for n := 1 + seed%step; n <= kind.last; n += step {
			what := fmt.Sprintf("%s %d fails", kind.name, n)
			disk := newTornDisk()
			kind.fail(disk).Store(n)

			acknowledged, err := work(t, disk)
			if err != nil && (!errors.Is(err, syscall.EIO) || !strings.Contains(err.Error(), flakyDir)) {
				t.Errorf("%s: %v, want EIO with the name of the directory", what, err)
			}

			cut := disk.memory.CrashClone(vfs.CrashCloneCfg{})

			disk.mend()
			wantStored(t, what, disk, acknowledged)
			wantStored(t, what+", then a power cut", cut, acknowledged)

			disk = newTornDisk()
			kind.fail(disk).Store(n)

			confirmed, tried := commitUntilRefused(t, disk)
			cut = disk.memory.CrashClone(vfs.CrashCloneCfg{})

			disk.mend()
			wantConfirmed(t, what, disk, confirmed, tried)
			wantConfirmed(t, what+", then a power cut", cut, confirmed, tried)
		}
	}
}

// commitUntilRefused commits ever higher offsets, and returns the last that was confirmed and the last that was tried.
func commitUntilRefused(t *testing.T, disk vfs.FS) (confirmed, tried consumer.Checkpoint) {
	t.Helper()

	b, err := Open(Options{Dir: flakyDir, FS: disk})
	if err != nil {
		return confirmed, tried
	}

	w := &world{Broker: b, t: t}
	defer func() { _ = w.Close() }() // says what the commit has said

	const commits = 60

	if b.CreateTopic(t.Context(), "t", 1) != nil || b.Publish(t.Context(), "t", someMessages(commits)) != nil {
		return confirmed, tried
	}

	member, err := b.Join(t.Context(), consumer.Subscription{Group: "g", Topics: []string{"t"}})
	if err != nil {
		return confirmed, tried
	}

	l := (&participant{Member: member, t: t}).one("t")

	for tried.Next < commits {
		tried.Next++

		if member.Commit(t.Context(), l, tried) != nil {
			return confirmed, tried
		}

		confirmed = tried
	}

	return confirmed, tried
}

// wantConfirmed opens the broker and checks that a group is where it was told to be, or where it asked to be last.
func wantConfirmed(t *testing.T, what string, disk vfs.FS, confirmed, tried consumer.Checkpoint) {
	t.Helper()

	if tried.Next == 0 {
		return
	}

	w := openWorld(t, Options{Dir: flakyDir, FS: disk})
	defer w.close()

	m := w.join("g", "t")

	switch c, err := m.Stored(t.Context(), m.one("t").Queue); {
	case errors.Is(err, consumer.ErrNoCheckpoint):
		if confirmed.Next != 0 {
			t.Errorf("%s: no checkpoint, %d was confirmed", what, confirmed.Next)
		}
	case err != nil || c.Next != confirmed.Next && c.Next != tried.Next:
		t.Errorf("%s: at %d, %v; %d was confirmed and %d tried", what, c.Next, err, confirmed.Next, tried.Next)
	}
}
