//nolint:ireturn // a decorator passes files on as they are
package embedded

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/millrace/millrace/pipeline"
)

// stuckDisk is a disk on which no table is made any more once it is stuck, so that what is written stays in logs.
type stuckDisk struct {
	vfs.FS

	stuck   atomic.Bool
	release chan struct{}
}

// Create waits for the disk when it is for a table.
func (d *stuckDisk) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if d.stuck.Load() && filepath.Ext(name) == ".sst" {
		<-d.release
	}

	return d.FS.Create(name, c)
}

// someLogs returns the disk of a broker that has crashed with several logs, the path of the last but one, and where each write
// in it ends. The messages of "t" are in that log only.
func someLogs(t *testing.T) (crashed *vfs.MemFS, path string, ends []int64) {
	t.Helper()

	memory := vfs.NewCrashableMem()
	disk := &stuckDisk{FS: memory, release: make(chan struct{})}
	w := openWorld(t, Options{Dir: flakyDir, FS: disk})
	w.topic("t", 1)
	w.topic("late", 1)
	disk.stuck.Store(true)

	folder := filepath.Join(flakyDir, dirPebble)
	last := func() string { return slices.Max(logsIn(t, memory, folder)) }
	padding := strings.Repeat("x", 10_000)
	path = last()

	for topic := "t"; last() == path; topic = "late" { // until a write has begun another log
		info, err := memory.Stat(path)
		if err != nil {
			t.Fatal(err)
		}

		ends = append(ends, info.Size())

		w.publish(topic, &pipeline.Message{Body: []byte(padding)})
	}

	w.publish("late", someMessages(3)...)

	crashed = memory.CrashClone(vfs.CrashCloneCfg{})

	close(disk.release)

	return crashed, path, ends
}

func logsIn(t *testing.T, disk vfs.FS, folder string) []string {
	t.Helper()

	names, err := disk.List(folder)
	if err != nil {
		t.Fatal(err)
	}

	var logs []string

	for _, name := range names {
		if filepath.Ext(name) == ".log" {
			logs = append(logs, filepath.Join(folder, name))
		}
	}

	return logs
}

// cutOff leaves the first bytes of a file.
func cutOff(t *testing.T, disk vfs.FS, path string, size int64) {
	t.Helper()

	file, err := disk.Open(path)
	if err != nil {
		t.Fatal(err)
	}

	kept := make([]byte, size)
	_, err = io.ReadFull(file, kept)

	cut, created := disk.Create(path, vfs.WriteCategoryUnspecified)
	if err := errors.Join(err, file.Close(), created); err != nil {
		t.Fatal(err)
	}

	_, err = cut.Write(kept)
	if err := errors.Join(err, cut.Sync(), cut.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestLogThatEndsTooEarlyIsReported cuts a log that another one follows off at the edge of each write and beside it. At an edge
// what is left makes sense, and only what follows tells that something is missing.
func TestLogThatEndsTooEarlyIsReported(t *testing.T) {
	t.Parallel()

	crashed, path, ends := someLogs(t)

	b, err := Open(Options{Dir: flakyDir, FS: crashed.CrashClone(vfs.CrashCloneCfg{})})
	if err != nil {
		t.Fatalf("whole: %v", err)
	}

	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	for _, end := range ends {
		for _, size := range []int64{end - 1, end, end + 1} {
			disk := crashed.CrashClone(vfs.CrashCloneCfg{})
			cutOff(t, disk, path, max(size, 0))

			b, err := Open(Options{Dir: flakyDir, FS: disk})
			if err == nil {
				err = b.Close()
			}

			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) {
				t.Errorf("%s cut off at %d, an edge is at %d: %v, want ErrDamaged and the log", path, size, end, err)
			}
		}
	}

	t.Logf("%d edges", len(ends))

	cutOff(t, crashed, path, ends[0])

	for _, log := range logsIn(t, crashed, filepath.Dir(path)) {
		if log > path {
			if err := crashed.Remove(log); err != nil {
				t.Fatal(err)
			}
		}
	}

	if b, err = Open(Options{Dir: flakyDir, FS: crashed}); err != nil {
		t.Fatalf("without the logs behind it, as the error says: %v", err)
	}

	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
