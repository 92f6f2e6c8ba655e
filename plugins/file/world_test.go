package file

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/pipeline"
)

// world is a sink on a file of its own, with faults to switch on.
type world struct {
	path string
	sink *Sink
	disk *faultyDisk
	logs *observer.ObservedLogs
}

func setup(t *testing.T, o Options) *world {
	t.Helper()

	if o.Path == "" {
		o.Path = filepath.Join(t.TempDir(), "out", "lines.jsonl")
	}

	core, logs := observer.New(zapcore.DebugLevel)

	sink, err := New(o, zap.New(core))
	if err != nil {
		t.Fatal(err)
	}

	w := &world{path: o.Path, sink: sink, disk: &faultyDisk{}, logs: logs}
	sink.open = func(path string) (opened, error) {
		o, err := openFile(path)
		if path != w.path {
			return o, err // one of several, without faults
		}

		w.disk.handle, o.file = o.file, w.disk

		return o, err
	}

	t.Cleanup(func() {
		if err := sink.Close(); err != nil {
			t.Error(err)
		}
	})

	return w
}

func (w *world) open(t *testing.T) *world {
	t.Helper()

	if err := w.sink.Open(t.Context()); err != nil {
		t.Fatal(err)
	}

	return w
}

func (w *world) holds(t *testing.T, want string) {
	t.Helper()

	got, err := os.ReadFile(w.path)
	if err != nil {
		t.Fatal(err)
	}

	if string(got) != want {
		t.Errorf("the file holds %q, want %q", got, want)
	}
}

// faultyDisk fails the calls that its fields say, counts the syncs, and knows what a power cut would take.
type faultyDisk struct {
	handle

	tear     bool // a Write stores half of its bytes and fails
	sync     error
	truncate error
	syncs    int
	unsafe   int // bytes that were written since the last sync
}

func (d *faultyDisk) Write(p []byte) (int, error) {
	d.unsafe += len(p)

	if !d.tear {
		return d.handle.Write(p)
	}

	n, err := d.handle.Write(p[:len(p)/2])

	return n, errors.Join(err, syscall.ENOSPC)
}

func (d *faultyDisk) Sync() error {
	d.syncs++

	if d.sync != nil {
		return d.sync
	}

	d.unsafe = 0

	return d.handle.Sync()
}

func (d *faultyDisk) Truncate(size int64) error {
	if d.truncate != nil {
		return d.truncate
	}

	return d.handle.Truncate(size)
}

func batchOf(bodies ...string) []*pipeline.Message {
	batch := make([]*pipeline.Message, len(bodies))
	for i, b := range bodies {
		batch[i] = &pipeline.Message{Body: []byte(b)}
	}

	return batch
}

// cause is the error of the first message.
func cause(err error) error {
	if failures, ok := errors.AsType[*pipeline.BatchError](err); ok {
		return failures.Failed[0]
	}

	return err
}
