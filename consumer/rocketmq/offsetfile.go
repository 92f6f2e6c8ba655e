package rocketmq

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Files of a broadcasting member. Those of RocketMQ's own client are read and not changed; the others are ours.
const (
	ownFile    = "checkpoints.json"
	ownBackup  = "checkpoints.json.bak"
	ownDamaged = "checkpoints.json.damaged"
	javaFile   = "offsets.json"
	javaBackup = "offsets.json.bak"
	lockFile   = "lock"
)

// ErrOffsetFile is returned by Join when the offsets of a broadcasting member are there but cannot be read, or are in use.
var ErrOffsetFile = errors.New("rocketmq: offsets of a broadcasting member")

// offsetFile keeps the checkpoints of a broadcasting member. It is safe for concurrent use.
type offsetFile struct {
	dir  string
	lock *os.File
	// create makes a file to be written; tests put faults into it.
	create func(name string) (syncedFile, error)
	// passed says which damaged file was passed over, and why; nil when none was.
	passed error

	mu     sync.Mutex
	queues map[pipeline.Queue]consumer.Checkpoint
}

// syncedFile is what is needed of a file that is written whole.
type syncedFile interface {
	io.WriteCloser
	Sync() error
}

// openOffsets reads the offsets of the member of an instance and keeps other processes from them. An empty dir means the one
// of RocketMQ's own clients, whose offsets of a member with the same id are taken over when there are none of ours. What they
// call a topic is put through name.
func openOffsets(dir, instance, id, group string, name func(string) string) (*offsetFile, error) {
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("%w: no home directory, so name Options.OffsetDir: %w", ErrOffsetFile, err)
		}

		dir = filepath.Join(home, ".rocketmq_offsets")
	}

	// Not by the id: it has this machine's address in it, which may be another tomorrow.
	f := &offsetFile{
		dir: filepath.Join(dir, instance, group), create: createFile, queues: map[pipeline.Queue]consumer.Checkpoint{},
	}

	if err := os.MkdirAll(f.dir, 0o750); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffsetFile, err)
	}

	lock, err := os.OpenFile(filepath.Join(f.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOffsetFile, err)
	}

	f.lock = lock

	if err := lockWhole(lock); err != nil {
		f.close()

		return nil, fmt.Errorf("%w: %s is in use: another member has this instance name: %w", ErrOffsetFile, f.dir, err)
	}

	if err := f.load(filepath.Join(dir, id, group), name); err != nil {
		f.close()

		return nil, err
	}

	return f, nil
}

func (f *offsetFile) close() { _ = f.lock.Close() } // which also unlocks

// load reads the newest file that there is: ours, or else that of RocketMQ's own client.
func (f *offsetFile) load(javaDir string, name func(string) string) error {
	found, err := f.read(f.dir, ownFile, ownBackup, readOwn)
	if err == nil && !found {
		_, err = f.read(javaDir, javaFile, javaBackup, func(body []byte) (map[pipeline.Queue]consumer.Checkpoint, error) {
			return readJava(body, name)
		})
	}

	if err == nil && found && f.passed != nil {
		// By another name it never takes the place of the copy.
		err = os.Rename(filepath.Join(f.dir, ownFile), filepath.Join(f.dir, ownDamaged))
	}

	if err != nil {
		return fmt.Errorf("%w: %w", ErrOffsetFile, err)
	}

	return nil
}

// read reads a file, or the copy that was made before it when there is none or it is damaged. When neither can be read, that
// is an error rather than a start from nothing.
func (f *offsetFile) read(
	dir, file, backup string, decode func([]byte) (map[pipeline.Queue]consumer.Checkpoint, error),
) (found bool, err error) {
	var damaged []error

	for _, file := range []string{file, backup} {
		path := filepath.Join(dir, file)

		body, err := os.ReadFile(path) //nolint:gosec // the options name the directory
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}

		var queues map[pipeline.Queue]consumer.Checkpoint
		if err == nil {
			queues, err = decode(body)
		}

		switch {
		case errors.Is(err, errBegun):
		case err != nil:
			damaged = append(damaged, fmt.Errorf("%s: %w", path, err))
		default:
			f.queues, f.passed = queues, errors.Join(damaged...)

			return true, nil
		}
	}

	if damaged != nil {
		return false, fmt.Errorf("%s has no file that can be read; mend one, or remove them to begin anew: %w",
			dir, errors.Join(damaged...))
	}

	return false, nil
}

func (f *offsetFile) stored(q pipeline.Queue) (consumer.Checkpoint, error) {
	f.mu.Lock()
	defer f.mu.Unlock()

	c, found := f.queues[q]
	if !found {
		return c, consumer.ErrNoCheckpoint
	}

	return consumer.Checkpoint{Next: c.Next, Done: slices.Clone(c.Done)}, nil
}

// commit stores a checkpoint among those of all queues, also of those that are not assigned now. Nil means that it is on disk.
func (f *offsetFile) commit(q pipeline.Queue, c consumer.Checkpoint) error {
	f.mu.Lock()
	defer f.mu.Unlock()

	before, had := f.queues[q]
	f.queues[q] = consumer.Checkpoint{Next: c.Next, Done: slices.Clone(c.Done)}

	if err := f.write(); err != nil {
		if f.queues[q] = before; !had {
			delete(f.queues, q)
		}

		return fmt.Errorf("%w: %w", ErrOffsetFile, err)
	}

	return nil
}

// write replaces the file in one step and keeps the one before as a copy: at any moment, one of them is there and whole.
func (f *offsetFile) write() error {
	name, backup := filepath.Join(f.dir, ownFile), filepath.Join(f.dir, ownBackup)
	fresh, second := name+".new", backup+".new"

	if err := f.writeSynced(fresh, encodeOwn(f.queues)); err != nil {
		return err
	}

	// The copy is a second name of the file that is replaced. Without such a file the former copy stays.
	_ = os.Remove(second)

	if os.Link(name, second) == nil {
		_ = os.Rename(second, backup)
	}

	if err := os.Rename(fresh, name); err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	return syncDir(f.dir)
}

// writeSynced writes a file that is on disk when it returns.
func (f *offsetFile) writeSynced(name string, body []byte) error {
	file, err := f.create(name)
	if err != nil {
		return err
	}

	_, err = file.Write(body)
	if err == nil {
		err = file.Sync()
	}

	return errors.Join(err, file.Close())
}

func createFile(name string) (syncedFile, error) { //nolint:ireturn // tests put faults into it
	return os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec,wrapcheck // the options name it
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // as above
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	return errors.Join(d.Sync(), d.Close())
}
