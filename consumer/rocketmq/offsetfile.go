package rocketmq

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Files of a broadcasting member. The first two and the lock are ours; the others are RocketMQ's own client's, and not changed.
const (
	ownFile    = "checkpoints.json"
	ownBackup  = "checkpoints.json.bak"
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

	mu     sync.Mutex
	queues map[pipeline.Queue]consumer.Checkpoint
}

// fileEntry is one queue in the file.
type fileEntry struct {
	Topic  string               `json:"topic"`
	Broker string               `json:"broker"`
	Queue  int                  `json:"queue"`
	Next   pipeline.Offset      `json:"next"`
	Done   [][2]pipeline.Offset `json:"done,omitempty"`
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
	f := &offsetFile{dir: filepath.Join(dir, instance, group), queues: map[pipeline.Queue]consumer.Checkpoint{}}

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

// load reads the newest file that there is. One that is damaged is passed over for the copy that was made before it; when
// that is no better, it is an error rather than a start from nothing.
func (f *offsetFile) load(javaDir string, name func(string) string) error {
	for _, pair := range []struct {
		dir, file, backup string
		read              func([]byte) (map[pipeline.Queue]consumer.Checkpoint, error)
	}{
		{f.dir, ownFile, ownBackup, readOwn},
		{javaDir, javaFile, javaBackup, func(body []byte) (map[pipeline.Queue]consumer.Checkpoint, error) {
			return readJava(body, name)
		}},
	} {
		var damaged []error

		for _, file := range []string{pair.file, pair.backup} {
			body, err := os.ReadFile(filepath.Join(pair.dir, file)) //nolint:gosec // the options name the directory
			if errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(body)) == 0 {
				continue
			}

			var queues map[pipeline.Queue]consumer.Checkpoint
			if err == nil {
				queues, err = pair.read(body)
			}

			if err == nil {
				f.queues = queues

				return nil
			}

			damaged = append(damaged, fmt.Errorf("%s: %w", file, err))
		}

		if damaged != nil {
			return fmt.Errorf("%w: %s has no file that can be read; mend one, or remove them to begin anew: %w",
				ErrOffsetFile, pair.dir, errors.Join(damaged...))
		}
	}

	return nil
}

func readOwn(body []byte) (map[pipeline.Queue]consumer.Checkpoint, error) {
	var entries []fileEntry

	if err := json.Unmarshal(body, &entries); err != nil {
		return nil, err //nolint:wrapcheck // the caller names the file
	}

	queues := make(map[pipeline.Queue]consumer.Checkpoint, len(entries))

	for _, e := range entries {
		c := consumer.Checkpoint{Next: e.Next}
		for _, run := range e.Done {
			c.Done = append(c.Done, consumer.Run{From: run[0], To: run[1]})
		}

		if err := c.Validate(); err != nil {
			return nil, err //nolint:wrapcheck // the caller names the file
		}

		queues[pipeline.Queue{Topic: e.Topic, Broker: e.Broker, ID: e.Queue}] = c
	}

	return queues, nil
}

// readJava reads what RocketMQ's own client writes, whose keys are objects.
func readJava(body []byte, name func(string) string) (map[pipeline.Queue]consumer.Checkpoint, error) {
	offsets, err := readOffsetTable(body)
	if err != nil {
		return nil, err
	}

	queues := make(map[pipeline.Queue]consumer.Checkpoint, len(offsets))

	for q, o := range offsets {
		if q.Topic = name(q.Topic); o >= 0 {
			queues[q] = consumer.Checkpoint{Next: o}
		}
	}

	return queues, nil
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

// write replaces the file in one step and keeps the one before as a copy.
func (f *offsetFile) write() error {
	entries := make([]fileEntry, 0, len(f.queues))

	for q, c := range f.queues {
		e := fileEntry{Topic: q.Topic, Broker: q.Broker, Queue: q.ID, Next: c.Next}
		for _, run := range c.Done {
			e.Done = append(e.Done, [2]pipeline.Offset{run.From, run.To})
		}

		entries = append(entries, e)
	}

	slices.SortFunc(entries, func(a, b fileEntry) int { return consumer.CompareQueues(a.queue(), b.queue()) })

	name, temporary := filepath.Join(f.dir, ownFile), filepath.Join(f.dir, ownFile+".new")

	if err := writeSynced(temporary, encode(entries)); err != nil {
		return err
	}

	// The copy is a second name of the file that is replaced: a crash in between leaves one of them whole.
	_ = os.Remove(filepath.Join(f.dir, ownBackup))
	_ = os.Link(name, filepath.Join(f.dir, ownBackup))

	if err := os.Rename(temporary, name); err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	return syncDir(f.dir)
}

func (e fileEntry) queue() pipeline.Queue {
	return pipeline.Queue{Topic: e.Topic, Broker: e.Broker, ID: e.Queue}
}

// writeSynced writes a file that is on disk when it returns.
func writeSynced(name string, body []byte) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600) //nolint:gosec // the options name it
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	_, err = file.Write(body)

	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir) //nolint:gosec // as above
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	return errors.Join(d.Sync(), d.Close())
}
