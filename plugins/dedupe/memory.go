// Package dedupe filters messages that have been seen already, as far as this process remembers.
package dedupe

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Memory is what the lanes of a stage remember together. It is safe for concurrent use.
type Memory struct {
	by    plugins.Field
	keep  time.Duration
	most  int
	clock plugins.Clock

	mu sync.Mutex // guards what is below
	// seen and ring hold the same entries. The ring is in the order of their times; first is where the oldest stands.
	seen  map[digest]entry
	ring  []digest
	first int
}

// digest stands for the value of a field. It is long enough that two values with the same digest do not occur.
type digest [16]byte

// entry is who was seen first.
type entry struct {
	at     time.Time
	id     string
	queue  pipeline.Queue
	offset pipeline.Offset
}

// New returns an empty memory. A nil clock is the real one.
func New(o Options, clock plugins.Clock) (*Memory, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("dedupe: %w", err)
	}

	o, err := withDefaults(o)
	if err != nil {
		return nil, fmt.Errorf("dedupe: %w", err)
	}

	if clock == nil {
		clock = plugins.RealClock{}
	}

	return &Memory{by: o.By, keep: time.Duration(o.For), most: o.Most, clock: clock, seen: make(map[digest]entry)}, nil
}

// verdict is what the memory says of a message.
type verdict struct {
	duplicate bool
	// forgotten counts the messages that had to be forgotten for this one.
	forgotten int64
}

// judge remembers a message that is seen first.
func (y *Memory) judge(m *pipeline.Message) verdict {
	value := y.by.Of(m)
	if value == "" {
		return verdict{}
	}

	sum := sha256.Sum256([]byte(value))
	d := digest(sum[:len(digest{})])
	now := y.clock.Now()

	y.mu.Lock()
	defer y.mu.Unlock()

	y.expire(now)

	if e, ok := y.seen[d]; ok {
		return verdict{duplicate: !e.is(m)}
	}

	var v verdict

	if len(y.seen) == y.most {
		y.forget()

		v.forgotten = 1
	}

	y.seen[d] = entry{at: now, id: m.ID, queue: m.Origin.Queue, offset: m.Origin.Offset}
	y.ring = append(y.ring, d)

	return v
}

// is reports whether m is the message that was seen first, in a later attempt: the same record, or the same id where a
// broker says that it delivers m again (a record of a retry topic has a place of its own).
func (e entry) is(m *pipeline.Message) bool {
	if e.id != m.ID {
		return false
	}

	return e.queue == m.Origin.Queue && e.offset == m.Origin.Offset || m.Origin.Delivery > 1 && m.ID != ""
}

func (y *Memory) expire(now time.Time) {
	for y.first < len(y.ring) && now.Sub(y.seen[y.ring[y.first]].at) >= y.keep {
		y.forget()
	}
}

// forget drops the oldest entry. It moves the ring up when half of it is empty, so each entry is moved once on average.
func (y *Memory) forget() {
	delete(y.seen, y.ring[y.first])
	y.first++

	if y.first > len(y.ring)/2 {
		y.ring = append(y.ring[:0], y.ring[y.first:]...)
		y.first = 0
	}
}
