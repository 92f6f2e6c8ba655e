package embedded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	maxQueues  = 1 << 16
	maxNameLen = 200
)

// topic is a topic that exists. It never changes but for robin.
type topic struct {
	name   string
	id     uint32
	queues []*queue
	// robin is the queue for the next message without a key. It belongs to who holds the store's turn.
	robin int
}

func newTopic(name string, id uint32, queues int) *topic {
	t := &topic{name: name, id: id, queues: make([]*queue, queues)}
	for i := range t.queues {
		t.queues[i] = &queue{
			id:   queueID{topic: id, queue: uint32(i)},
			name: pipeline.Queue{Topic: name, ID: i},
		}
	}

	return t
}

// queueFor returns the queue of a message: the same for the same key, in turn without one.
func (t *topic) queueFor(key string) *queue {
	if key == "" {
		t.robin = (t.robin + 1) % len(t.queues)

		return t.queues[t.robin]
	}

	return t.queues[hash(key)%uint32(len(t.queues))]
}

// hash is FNV-1a, 32 bits. It is a part of the format: a key's messages stay in one queue.
func hash(key string) uint32 {
	const offset, prime = 2166136261, 16777619

	h := uint32(offset)
	for i := range len(key) {
		h = (h ^ uint32(key[i])) * prime
	}

	return h
}

// names returns the queues by name.
func (t *topic) names() []pipeline.Queue {
	names := make([]pipeline.Queue, len(t.queues))
	for i, q := range t.queues {
		names[i] = q.name
	}

	return names
}

// CreateTopic makes a topic with a number of queues. A topic that exists with the same number is left as it is; with
// another number the error is an [ErrQueueCount] that names both.
func (b *Broker) CreateTopic(ctx context.Context, name string, queues int) error {
	if err := checkName("topic", name); err != nil {
		return err
	}

	if queues < 1 || queues > maxQueues {
		return fmt.Errorf("embedded: a topic has 1 to %d queues, not %d", maxQueues, queues)
	}

	if err := b.enter(); err != nil {
		return err
	}
	defer b.leave()

	t, err := b.ensureTopic(ctx, name, queues)
	if err == nil && len(t.queues) != queues {
		err = fmt.Errorf("%w: %q has %d, not %d", ErrQueueCount, name, len(t.queues), queues)
	}

	return err
}

// ensureTopic returns a topic, after making it with so many queues when there is none.
func (b *Broker) ensureTopic(ctx context.Context, name string, queues int) (*topic, error) {
	b.creating.Lock()
	defer b.creating.Unlock()

	b.mu.RLock()
	known, id := b.topics[name], uint32(len(b.topics))
	b.mu.RUnlock()

	if known != nil {
		return known, nil
	}

	tx, err := b.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.abort()

	t := newTopic(name, id, queues)
	for _, q := range t.queues {
		tx.touch(q)
	}

	key := nameKey(kindTopic, name)
	if err := tx.set(key, func(e *encoder) ([]byte, error) { return e.topic(key, t) }); err != nil {
		return nil, err
	}

	if err := tx.commit(); err != nil {
		return nil, err
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	b.addTopic(t)

	return t, nil
}

// addTopic makes a topic known. The caller holds mu, or has the broker alone.
func (b *Broker) addTopic(t *topic) {
	b.topics[t.name] = t
	for _, q := range t.queues {
		b.queues[q.id] = q
	}
}

// topic returns a topic that exists.
func (b *Broker) topic(name string) (*topic, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()

	if t := b.topics[name]; t != nil {
		return t, nil
	}

	known := slices.DeleteFunc(slices.Sorted(maps.Keys(b.topics)), func(name string) bool {
		return strings.HasPrefix(name, consumer.RetryTopic("")) // nobody means one of these
	})

	return nil, &consumer.UnknownTopicError{Topic: name, Known: known}
}

// queue returns a queue that exists.
func (b *Broker) queue(name pipeline.Queue) (*queue, error) {
	t, err := b.topic(name.Topic)
	if err != nil {
		return nil, err
	}

	if name.Broker != "" || name.ID < 0 || name.ID >= len(t.queues) {
		return nil, fmt.Errorf("embedded: no queue %s: the topic has the queues 0 to %d", name, len(t.queues)-1)
	}

	return t.queues[name.ID], nil
}

// checkName refuses names that would not be safe in keys, files and actor names.
func checkName(what, name string) error {
	legal := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) ||
			r == '%' && what == "topic"
	}

	if name == "" || len(name) > maxNameLen || strings.ContainsFunc(name, func(r rune) bool { return !legal(r) }) {
		return fmt.Errorf("%w: %s %q: use 1 to %d letters, digits, '.', '_' and '-'", ErrBadName, what, name, maxNameLen)
	}

	return nil
}
