package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// readersGroup is the group of those who read topics with a command. They store nothing in it.
const readersGroup = "millrace-read"

// line is one line of a read: a message, or why there are no more.
type line struct {
	*Message

	Error string `json:"error,omitempty"`
}

// stream writes lines, those of several queues one after the other.
type stream struct {
	mu      sync.Mutex
	encoder *json.Encoder // guarded by mu
	flush   func() error  // called with mu held
}

func (s *stream) write(messages []*pipeline.Message) error {
	if len(messages) == 0 {
		return nil
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	for _, m := range messages {
		if err := s.encoder.Encode(line{Message: MessageOf(m)}); err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}

	if err := s.flush(); err != nil {
		return fmt.Errorf("control: %w", err)
	}

	return nil
}

// Reader reads topics of any broker beside the groups that work on them: as a broadcasting member of a group that stores nothing.
type Reader struct {
	Broker consumer.Broker
	// Group is the group, Instance the name in it that no other reader has at the time.
	Group, Instance string
}

// join makes the reader a member on a topic, with all of its queues.
func (r Reader) join(ctx context.Context, topic string) (consumer.Member, []consumer.Lease, error) {
	member, err := r.Broker.Join(ctx, consumer.Subscription{
		Group: r.Group, Topics: []string{topic}, Broadcast: true, Instance: r.Instance,
	})
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // who calls says where it comes from
	}

	assignment, err := member.Assigned(ctx, 0)
	if err != nil {
		return nil, nil, errors.Join(err, member.Leave(context.WithoutCancel(ctx)))
	}

	return member, assignment.Leases, nil
}

// Read calls write with the messages of a topic, some at a time: of one queue after the other, or when it follows, of all at
// once, so that write may be called concurrently then. It ends at the present end, with an error, or with ctx.
func (r Reader) Read(ctx context.Context, what Read, write func([]*pipeline.Message) error) (err error) {
	member, leases, err := r.join(ctx, what.Topic)
	if err != nil {
		return err
	}

	defer func() { err = errors.Join(err, member.Leave(context.WithoutCancel(ctx))) }()

	if !what.Follow {
		for _, lease := range leases {
			if err := readQueue(ctx, member, lease, what, write); err != nil {
				return err
			}
		}

		return nil
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var queues sync.WaitGroup

	for _, lease := range leases {
		queues.Go(func() { cancel(readQueue(ctx, member, lease, what, write)) })
	}

	queues.Wait()

	return context.Cause(ctx)
}

// Offsets returns what the position of a reset means in the queues of its topic.
func (r Reader) Offsets(ctx context.Context, reset Reset) (offsets map[pipeline.Queue]pipeline.Offset, err error) {
	member, leases, err := r.join(ctx, reset.Topic)
	if err != nil {
		return nil, err
	}

	defer func() { err = errors.Join(err, member.Leave(context.WithoutCancel(ctx))) }()

	offsets = make(map[pipeline.Queue]pipeline.Offset)

	for _, lease := range leases {
		if offsets[lease.Queue], err = find(ctx, member, lease.Queue, reset.To); err != nil {
			return nil, err
		}
	}

	return offsets, nil
}

// readQueue gives a queue to write, up to its present end, or until ctx ends.
func readQueue(
	ctx context.Context, member consumer.Member, lease consumer.Lease, r Read, write func([]*pipeline.Message) error,
) error {
	from, err := find(ctx, member, lease.Queue, r.From)
	if err != nil {
		return err
	}

	end, err := member.Find(ctx, lease.Queue, pipeline.Last)
	if err != nil {
		return err //nolint:wrapcheck // the client says where it comes from
	}

	for r.Follow || from < end {
		batch, err := member.Pull(ctx, lease, from, consumer.Limit{Messages: 500, Bytes: 4 << 20})

		damaged, isDamaged := errors.AsType[*consumer.DamagedError](err)
		if isDamaged {
			from = damaged.Offset + 1

			continue // the others can be read
		}

		if err != nil {
			return err //nolint:wrapcheck // as above
		}

		messages := batch.Messages
		for i, m := range messages {
			if !r.Follow && m.Origin.Offset >= end {
				messages = messages[:i]

				break
			}
		}

		if err := write(messages); err != nil {
			return err
		}

		from = batch.Next
	}

	return nil
}

// find returns the offset that a position means in a queue, within what the queue holds.
func find(ctx context.Context, member consumer.Member, q pipeline.Queue, p Position) (pipeline.Offset, error) {
	if p.At {
		return member.Find(ctx, q, p.Start) //nolint:wrapcheck // the client says where it comes from
	}

	first, err := member.Find(ctx, q, pipeline.First)
	if err != nil {
		return 0, err //nolint:wrapcheck // as above
	}

	last, err := member.Find(ctx, q, pipeline.Last)

	return min(max(p.Offset, first), last), err
}
