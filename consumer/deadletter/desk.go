package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Group is the consumer group whose checkpoints say which dead letters are settled.
const Group = "millrace-dlq"

// How much is pulled at once.
const (
	pullMessages = 256
	pullBytes    = 4 << 20
)

// Desk reads and settles the dead letters of a broker. It is safe for concurrent use; calls wait for each other, since the
// group has one member at a time.
type Desk struct {
	broker    consumer.Broker
	publisher consumer.Publisher
	// queues says how many queues a topic has, nil where no other process can have any of them.
	queues func(ctx context.Context, topic string) (int, error)
	// turn holds one value, which a call takes and gives back.
	turn chan struct{}
}

// NewDesk returns a desk at a broker, both sides of which are the caller's.
func NewDesk(b consumer.Broker, p consumer.Publisher) *Desk {
	d := &Desk{broker: b, publisher: p, turn: make(chan struct{}, 1)}
	d.turn <- struct{}{}

	return d
}

// NewSharedDesk returns a desk at a broker where other processes may have one too: a call that would see only a part of a topic,
// since somebody else has the rest, fails. queues says how many queues a topic has.
func NewSharedDesk(
	b consumer.Broker, p consumer.Publisher, queues func(ctx context.Context, topic string) (int, error),
) *Desk {
	d := NewDesk(b, p)
	d.queues = queues

	return d
}

// Query says what to read.
type Query struct {
	// Topic is a topic of dead letters.
	Topic string
	// At is the one to read; nil means all of the topic.
	At *Place
	// From is where to begin, in the order of the read; nil means at the beginning.
	From *Place
	// Settled asks for those that are settled, too.
	Settled bool
}

// within returns the part of a queue from first to end that is asked for.
func (q Query) within(of pipeline.Queue, first, end pipeline.Offset, cp consumer.Checkpoint) (from, to pipeline.Offset) {
	if !q.Settled {
		first = max(first, cp.Next)
	}

	if q.From != nil && q.From.Queue == of {
		first = max(first, q.From.Offset)
	}

	if q.At == nil {
		return first, end
	}

	return max(first, q.At.Offset), min(end, q.At.Offset+1)
}

// Settlement is what to do with a dead letter, which counts as settled afterwards.
type Settlement struct {
	Place Place `json:"place"`
	// Topic is where to publish Message; empty means that the letter is dropped.
	Topic   string   `json:"topic,omitempty"`
	Message *Message `json:"message,omitempty"`
}

// DeadLetters calls visit with the dead letters of a topic, queue by queue, up to the present end. A letter that cannot be read
// is left out. Visit must not call the desk.
func (d *Desk) DeadLetters(ctx context.Context, q Query, visit func(*Letter) error) error {
	return d.sit(ctx, q.Topic, func(v *visitor) error {
		for _, lease := range v.leases {
			if q.At != nil && q.At.Queue != lease.Queue {
				continue
			}

			if q.From != nil && consumer.CompareQueues(lease.Queue, q.From.Queue) < 0 {
				continue
			}

			if err := v.read(ctx, lease, q, visit); err != nil {
				return err
			}
		}

		return nil
	})
}

// Settle publishes what is to be replayed, and then stores that all of it is settled. What was published by a call that fails
// may be published again by the next one; nothing is settled that was not published.
func (d *Desk) Settle(ctx context.Context, topic string, all []Settlement) error {
	return d.sit(ctx, topic, func(v *visitor) error {
		byQueue := make(map[pipeline.Queue][]consumer.Run)

		for _, s := range all {
			if v.lease(s.Place.Queue) == nil {
				return fmt.Errorf("%s is in no queue of %q here", s.Place, topic)
			}

			q, at := s.Place.Queue, s.Place.Offset
			byQueue[q] = append(byQueue[q], consumer.Run{From: at, To: at + 1})
		}

		if err := d.publish(ctx, all); err != nil {
			return err
		}

		for q, runs := range byQueue {
			if err := v.settle(ctx, *v.lease(q), runs); err != nil {
				return err
			}
		}

		return nil
	})
}

// publish publishes what is to be replayed, a topic at a time.
func (d *Desk) publish(ctx context.Context, all []Settlement) error {
	byTopic := make(map[string][]*pipeline.Message)

	for _, s := range all {
		if s.Topic != "" && s.Message != nil {
			byTopic[s.Topic] = append(byTopic[s.Topic], s.Message.Pipeline())
		}
	}

	for topic, messages := range byTopic {
		if err := d.publisher.Publish(ctx, topic, messages); err != nil {
			return err //nolint:wrapcheck // it names the topic and what is wrong
		}
	}

	return nil
}

// visitor is the group's only member, for the time of one call.
type visitor struct {
	consumer.Member

	leases []consumer.Lease
}

// sit lets use work as the member of the group on a topic.
func (d *Desk) sit(ctx context.Context, topic string, use func(*visitor) error) (err error) {
	select {
	case <-d.turn:
		defer func() { d.turn <- struct{}{} }()
	case <-ctx.Done():
		return ctx.Err()
	}

	member, err := d.broker.Join(ctx, consumer.Subscription{Group: Group, Topics: []string{topic}})
	if err != nil {
		return err //nolint:wrapcheck // it names the topic and what is wrong
	}

	defer func() { err = errors.Join(err, member.Leave(context.WithoutCancel(ctx))) }()

	v := &visitor{Member: member}

	for known := uint64(0); len(v.leases) == 0; {
		a, err := member.Assigned(ctx, known)
		if err != nil {
			return err //nolint:wrapcheck // as above
		}

		known = a.Generation
		v.leases = slices.DeleteFunc(a.Leases, func(l consumer.Lease) bool { return l.Queue.Topic != topic })
	}

	if err := d.whole(ctx, topic, len(v.leases)); err != nil {
		return err
	}

	return use(v)
}

// whole fails when the desk has not got all queues of a topic.
func (d *Desk) whole(ctx context.Context, topic string, got int) error {
	if d.queues == nil {
		return nil
	}

	all, err := d.queues(ctx, topic)
	if err != nil || got >= all {
		return err
	}

	return fmt.Errorf("somebody else is at the dead letters of %q, as a member of group %q with %d of its %d queues; "+
		"call this again when they have ended", topic, Group, all-got, all)
}

func (v *visitor) lease(q pipeline.Queue) *consumer.Lease {
	i := slices.IndexFunc(v.leases, func(l consumer.Lease) bool { return l.Queue == q })
	if i < 0 {
		return nil
	}

	return &v.leases[i]
}

// stored returns what is settled of a queue. Where nothing is, first is where the queue begins.
func (v *visitor) stored(ctx context.Context, q pipeline.Queue) (cp consumer.Checkpoint, first pipeline.Offset, err error) {
	if first, err = v.Find(ctx, q, pipeline.First); err != nil {
		return cp, 0, err //nolint:wrapcheck // it names the queue
	}

	cp, err = v.Stored(ctx, q)
	if errors.Is(err, consumer.ErrNoCheckpoint) {
		return consumer.Checkpoint{Next: first}, first, nil
	}

	return cp, first, err //nolint:wrapcheck // as above
}

func (v *visitor) settle(ctx context.Context, l consumer.Lease, runs []consumer.Run) error {
	cp, first, err := v.stored(ctx, l.Queue)
	if err != nil {
		return err
	}

	// What retention has deleted since is no longer anybody's to settle.
	cp = cp.With(append(runs, consumer.Run{From: cp.Next, To: first})...)

	return v.Commit(ctx, l, cp) //nolint:wrapcheck // it names the queue
}

// read visits one letter of a queue, or all.
func (v *visitor) read(ctx context.Context, l consumer.Lease, q Query, visit func(*Letter) error) error {
	cp, from, err := v.stored(ctx, l.Queue)
	if err != nil {
		return err
	}

	end, err := v.Find(ctx, l.Queue, pipeline.Last)
	if err != nil {
		return err //nolint:wrapcheck // it names the queue
	}

	limit := consumer.Limit{Messages: pullMessages, Bytes: pullBytes}
	if q.At != nil {
		limit.Messages = 1
	}

	from, end = q.within(l.Queue, from, end, cp)

	look := func(m *pipeline.Message) error {
		letter := letterOf(m)
		letter.Settled = cp.Finished(m.Origin.Offset)

		if m.Origin.Offset < end && (q.Settled || !letter.Settled) {
			return visit(letter)
		}

		return nil
	}

	for from < end {
		batch, err := v.Pull(ctx, l, from, limit)

		damaged, isDamaged := errors.AsType[*consumer.DamagedError](err)
		if isDamaged {
			from = damaged.Offset + 1

			continue // the others can be read
		}

		if err != nil {
			return err //nolint:wrapcheck // it names the queue
		}

		for _, m := range batch.Messages {
			if err := look(m); err != nil {
				return err
			}
		}

		from = batch.Next
	}

	return nil
}

// errEnough ends a read.
var errEnough = errors.New("enough")

// Holds reports whether a topic is one of dead letters: by its name, or by the first message in it.
func (d *Desk) Holds(ctx context.Context, topic string) (bool, error) {
	if strings.HasPrefix(topic, consumer.DeadLetterTopic("")) {
		return true, nil
	}

	holds := false

	err := d.DeadLetters(ctx, Query{Topic: topic, Settled: true}, func(l *Letter) error {
		_, holds = consumer.CauseOf(l.Props)

		return errEnough
	})
	if errors.Is(err, errEnough) {
		err = nil
	}

	return holds, err
}
