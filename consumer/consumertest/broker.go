package consumertest

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Config is what a [Broker] can be told at its making. The zero value works.
type Config struct {
	// Seed seeds the faults.
	Seed uint64
	// Hold is how long a pull waits for a new message; 0 means 15 s.
	Hold time.Duration
	// Patience is how long a queue that was taken away may be kept before it goes to its next owner; 0 means 10 s.
	Patience time.Duration
	// RetryQueues is how many queues a group's retry topic has; 0 means 1.
	RetryQueues int
	// OnCommit is called with each commit that reaches the broker, also one that is refused, before it takes effect. It
	// runs under the broker's lock: it must not call the broker.
	OnCommit func(Commit)
}

// Broker is a broker in memory. It is safe for concurrent use.
type Broker struct {
	cfg Config

	mu     sync.Mutex
	rnd    *rand.Rand
	faults Faults
	topics map[string][]*queueLog
	groups map[string]*group
	// turn numbers what gets a number: messages without an id or a key, members without a name.
	turn   int
	epoch  uint64
	closed bool
	calls  []Call
}

var (
	_ consumer.Broker    = (*Broker)(nil)
	_ consumer.Publisher = (*Broker)(nil)
)

// NewBroker returns a broker without topics.
func NewBroker(cfg Config) *Broker {
	const (
		hold     = 15 * time.Second
		patience = 10 * time.Second
	)

	if cfg.Hold == 0 {
		cfg.Hold = hold
	}

	if cfg.Patience == 0 {
		cfg.Patience = patience
	}

	if cfg.RetryQueues == 0 {
		cfg.RetryQueues = 1
	}

	return &Broker{
		cfg:    cfg,
		rnd:    rand.New(rand.NewPCG(cfg.Seed, 0)),
		topics: make(map[string][]*queueLog),
		groups: make(map[string]*group),
	}
}

// CreateTopic creates a topic with queues 0 to queues-1; nothing happens when it exists.
func (b *Broker) CreateTopic(topic string, queues int) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.create(topic, queues)
}

// Close ends the broker: every call, also the ones under way, fails with consumer.ErrClosed. What it stored can still be
// looked at.
func (b *Broker) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.closed = true
	for _, g := range b.groups {
		for _, m := range g.members {
			m.wake()
		}
	}
}

// Publish implements consumer.Publisher.
func (b *Broker) Publish(ctx context.Context, topic string, messages []*pipeline.Message) error {
	call := Call{Op: OpPublish, Queue: pipeline.Queue{Topic: topic}}

	return b.do(ctx, call, func(*Call) error {
		logs, ok := b.topics[topic]
		if !ok {
			return &consumer.UnknownTopicError{Topic: topic, Known: slices.Sorted(maps.Keys(b.topics))}
		}

		for _, m := range messages {
			b.turn++
			at := b.turn

			if m.Key != "" {
				hash := fnv.New32a()
				_, _ = hash.Write([]byte(m.Key))
				at = int(hash.Sum32())
			}

			record := published(topic, m, b.turn)
			b.append(logs[at%len(logs)], record)
		}

		return nil
	})
}

// published returns what is stored of a message: nothing that the publisher still holds, and only what it may choose.
func published(topic string, m *pipeline.Message, turn int) record {
	stored := copyOf(m)
	stored.Topic = topic
	stored.Origin = pipeline.Origin{Delivery: 1}

	if stored.ID == "" {
		stored.ID = "message-" + strconv.Itoa(turn)
	}

	now := time.Now()
	if stored.Born.IsZero() {
		stored.Born = now
	}

	return record{message: stored, stored: now}
}

// Join implements consumer.Broker.
func (b *Broker) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	var joined *member

	err := b.do(ctx, Call{Op: OpJoin, Group: s.Group, Instance: s.Instance}, func(call *Call) error {
		if s.Group == "" || len(s.Topics) == 0 || s.Broadcast && s.Instance == "" {
			return fmt.Errorf("consumertest: not a subscription: %+v", s)
		}

		for _, topic := range s.Topics {
			if b.topics[topic] == nil {
				return &consumer.UnknownTopicError{Topic: topic, Known: slices.Sorted(maps.Keys(b.topics))}
			}
		}

		g := b.group(s.Group)

		if s.Instance == "" {
			b.turn++
			s.Instance = "member-" + strconv.Itoa(b.turn)
			call.Instance = s.Instance
		}

		if g.members[s.Instance] != nil {
			return fmt.Errorf("consumertest: group %s has a member %q already", s.Group, s.Instance)
		}

		joined = g.join(s)

		return nil
	})
	if err != nil {
		return nil, err
	}

	return joined, nil
}

// create makes a topic unless it exists. The caller holds the lock, here and below.
func (b *Broker) create(topic string, queues int) {
	if b.topics[topic] != nil {
		return
	}

	for id := range queues {
		q := &queueLog{queue: pipeline.Queue{Topic: topic, ID: id}, changed: make(chan struct{})}
		b.topics[topic] = append(b.topics[topic], q)
	}
}

// log returns the log of a queue.
func (b *Broker) log(q pipeline.Queue) (*queueLog, error) {
	logs := b.topics[q.Topic]
	if logs == nil {
		return nil, &consumer.UnknownTopicError{Topic: q.Topic, Known: slices.Sorted(maps.Keys(b.topics))}
	}

	if q.ID < 0 || q.ID >= len(logs) || q.Broker != "" {
		return nil, fmt.Errorf("consumertest: topic %s has no queue %s", q.Topic, q)
	}

	return logs[q.ID], nil
}
