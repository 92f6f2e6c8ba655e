package rocketmq

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/loosejson"
	"github.com/millrace/millrace/pipeline"
)

// Files of a broadcasting member, in a directory of its own. The first two are ours, the others are what RocketMQ's own client
// left there: they are read when there are none of ours, and not changed.
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
	Topic  string              `json:"topic"`
	Broker string              `json:"broker"`
	Queue  int                 `json:"queue"`
	Next   pipeline.Offset     `json:"next"`
	Done   [][2]pipeline.Offset `json:"done,omitempty"`
}

// openOffsets reads the offsets of a member and keeps other processes from them. An empty dir means the one that RocketMQ's
// own clients use.
func openOffsets(dir, id, group string) (*offsetFile, error) {
	if dir == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil, fmt.Errorf("%w: no home directory, so name Options.OffsetDir: %w", ErrOffsetFile, err)
		}

		dir = filepath.Join(home, ".rocketmq_offsets")
	}

	f := &offsetFile{dir: filepath.Join(dir, id, group), queues: map[pipeline.Queue]consumer.Checkpoint{}}

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

	if err := f.load(); err != nil {
		f.close()

		return nil, err
	}

	return f, nil
}

func (f *offsetFile) close() { _ = f.lock.Close() } // which also unlocks

// load reads the newest file that there is. One that is damaged is passed over for the copy that was made before it; when
// that is no better, it is an error rather than a start from nothing.
func (f *offsetFile) load() error {
	var damaged []error

	for _, candidate := range []struct {
		name string
		read func([]byte) (map[pipeline.Queue]consumer.Checkpoint, error)
	}{{ownFile, readOwn}, {ownBackup, readOwn}, {javaFile, readJava}, {javaBackup, readJava}} {
		if candidate.name == javaFile && len(damaged) > 0 {
			break // ours were there, and are newer
		}

		body, err := os.ReadFile(filepath.Join(f.dir, candidate.name))
		if errors.Is(err, fs.ErrNotExist) || err == nil && len(strings.TrimSpace(string(body))) == 0 {
			continue
		}

		if err == nil {
			f.queues, err = candidate.read(body)
		}

		if err == nil {
			return nil
		}

		damaged = append(damaged, fmt.Errorf("%s: %w", candidate.name, err))
	}

	if damaged != nil {
		return fmt.Errorf("%w: %s has no file that can be read; mend one, or remove them to begin anew: %w",
			ErrOffsetFile, f.dir, errors.Join(damaged...))
	}

	f.queues = map[pipeline.Queue]consumer.Checkpoint{}

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
func readJava(body []byte) (map[pipeline.Queue]consumer.Checkpoint, error) {
	offsets, err := readOffsetTable(body)
	if err != nil {
		return nil, err
	}

	queues := make(map[pipeline.Queue]consumer.Checkpoint, len(offsets))

	for q, o := range offsets {
		if o >= 0 {
			queues[q] = consumer.Checkpoint{Next: o}
		}
	}

	return queues, nil
}

// javaQueue is a queue as RocketMQ's own code writes it.
type javaQueue struct {
	Broker string          `json:"brokerName"`
	Queue  int             `json:"queueId"`
	Topic  string          `json:"topic"`
	Offset pipeline.Offset `json:"offset,omitempty"`
}

// readOffsetTable reads {"offsetTable":{queue:offset}} or {"offsetTable":[queue with offset]}.
func readOffsetTable(body []byte) (map[pipeline.Queue]pipeline.Offset, error) {
	strict, err := loosejson.Strict(body)
	if err != nil {
		return nil, fmt.Errorf("rocketmq: %w", err)
	}

	var (
		table struct {
			Offsets map[string]pipeline.Offset `json:"offsetTable"`
		}
		list struct {
			Offsets []javaQueue `json:"offsetTable"`
		}
	)

	offsets := map[pipeline.Queue]pipeline.Offset{}

	if json.Unmarshal(strict, &list) == nil {
		for _, q := range list.Offsets {
			offsets[pipeline.Queue{Topic: q.Topic, Broker: q.Broker, ID: q.Queue}] = q.Offset
		}

		return offsets, nil
	}

	if err := json.Unmarshal(strict, &table); err != nil {
		return nil, fmt.Errorf("rocketmq: table of offsets: %w", err)
	}

	for key, offset := range table.Offsets {
		var q javaQueue
		if err := json.Unmarshal([]byte(key), &q); err != nil {
			return nil, fmt.Errorf("rocketmq: table of offsets, key %q: %w", key, err)
		}

		offsets[pipeline.Queue{Topic: q.Topic, Broker: q.Broker, ID: q.Queue}] = offset
	}

	return offsets, nil
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
	file, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	_, err = file.Write(body)

	return errors.Join(err, file.Sync(), file.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is
	}

	return errors.Join(d.Sync(), d.Close())
}
