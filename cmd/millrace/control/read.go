package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
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
		err := s.encoder.Encode(line{Message: &Message{
			ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: m.Body,
			Queue: m.Origin.Queue.ID, Offset: m.Origin.Offset,
		}})
		if err != nil {
			return fmt.Errorf("control: %w", err)
		}
	}

	if err := s.flush(); err != nil {
		return fmt.Errorf("control: %w", err)
	}

	return nil
}

// readTopic writes a topic to a stream, beside the groups that work on it.
func readTopic(ctx context.Context, broker consumer.Broker, r Read, number int, to *stream) (err error) {
	member, err := broker.Join(ctx, consumer.Subscription{
		Group: readersGroup, Topics: []string{r.Topic}, Broadcast: true, Instance: strconv.Itoa(number),
	})
	if err != nil {
		return err //nolint:wrapcheck // the client says where it comes from
	}

	defer func() { err = errors.Join(err, member.Leave(context.WithoutCancel(ctx))) }()

	assignment, err := member.Assigned(ctx, 0)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}

	if !r.Follow {
		for _, lease := range assignment.Leases {
			if err := readQueue(ctx, member, lease, r, to); err != nil {
				return err
			}
		}

		return nil
	}

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var queues sync.WaitGroup

	for _, lease := range assignment.Leases {
		queues.Go(func() { cancel(readQueue(ctx, member, lease, r, to)) })
	}

	queues.Wait()

	return context.Cause(ctx)
}

// readQueue writes a queue to a stream, up to its present end, or until ctx ends.
func readQueue(ctx context.Context, member consumer.Member, lease consumer.Lease, r Read, to *stream) error {
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

		if err := to.write(messages); err != nil {
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
