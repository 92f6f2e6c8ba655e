package embedded

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// longestDelay keeps due times inside of what nanoseconds of Unix time can say.
const longestDelay = 100 * 365 * 24 * time.Hour

// SendBack gives a message back to be delivered again; see [consumer.Returner]. In one write the record at its origin is
// copied to where it waits for its due time, and its offset is marked as returned by the group. The errors are
// [consumer.ErrNotOwner] when the lease has ended under which it was pulled, [ErrBroadcast], or what is wrong with the
// record at the origin.
func (m *member) SendBack(ctx context.Context, msg *pipeline.Message, delay time.Duration) error {
	b := m.group.broker
	due := time.Now().Add(min(delay, longestDelay))

	err := m.giveBack(ctx, msg.Origin, func(tx *tx, r *record) error {
		retry, err := b.topic(consumer.RetryTopic(m.group.name))
		if err != nil {
			return err
		}

		r.delivery++

		q := retry.queueFor(r.key)
		if delay <= 0 {
			return tx.append(q, r, due.UnixNano())
		}

		_, err = tx.enc.putRecord(tx.batch, delayedKey(due.UnixNano(), b.serial(), q.id), r)

		return err
	})
	if err == nil && delay > 0 {
		b.delays.add(due.UnixNano())
	}

	return err
}

// DeadLetter parks a message; see [consumer.Returner]. The dead-letter topic is made with one queue when there is none.
// The errors are those of SendBack.
func (m *member) DeadLetter(ctx context.Context, msg *pipeline.Message, c consumer.Cause) error {
	name := c.Topic
	if name == "" {
		name = consumer.DeadLetterTopic(m.group.name)
	}

	if err := errors.Join(checkName("topic", name), m.returns(msg.Origin)); err != nil {
		return err
	}

	if err := m.ensureTopic(ctx, name); err != nil {
		return err
	}

	return m.giveBack(ctx, msg.Origin, func(tx *tx, r *record) error {
		dead, err := m.group.broker.topic(name)
		if err != nil {
			return err
		}

		r.topic, r.delivery = "", 1 // a dead letter starts anew in a topic of its own
		maps.Copy(r.props, c.Props(m.group.name, time.Now()))

		return tx.append(dead.queueFor(r.key), r, time.Now().UnixNano())
	})
}

// returns refuses for a member that has nowhere to return a message to.
func (m *member) returns(from pipeline.Origin) error {
	if m.broadcast {
		return fmt.Errorf("%w: %s at %d", ErrBroadcast, from.Queue, from.Offset)
	}

	return nil
}

// ensureTopic makes a dead-letter topic when there is none.
func (m *member) ensureTopic(ctx context.Context, name string) error {
	if err := m.group.broker.enter(); err != nil {
		return err
	}
	defer m.group.broker.leave()

	_, err := m.group.broker.ensureTopic(ctx, name, 1)

	return err
}

// giveBack marks an offset as returned and lets put store a copy of its record, in one write. An offset that is marked
// already is left alone.
func (m *member) giveBack(ctx context.Context, from pipeline.Origin, put func(*tx, *record) error) error {
	if err := errors.Join(ctx.Err(), m.returns(from)); err != nil {
		return err
	}

	b := m.group.broker

	return m.write(ctx, from.Queue, from.Epoch, func(tx *tx, l *lease) error {
		mark := returnedKey(m.group.id, l.queue.id, from.Offset)

		marked, err := b.store.get(mark, func([]byte) error { return nil })
		if err != nil {
			return fmt.Errorf("embedded: looking for %s at %d among the returned: %w", from.Queue, from.Offset, err)
		}

		if marked {
			return nil // and waits for the disk as the first call does, which may still be under way
		}

		r, err := b.original(l.queue, from.Offset)
		if err != nil {
			return err
		}

		if err := put(tx, r); err != nil {
			return err
		}

		return errors.Join(tx.batch.Set(mark, nil, nil), m.begun(tx, l))
	})
}

// original reads the record at an offset, as it is to be delivered again.
func (b *Broker) original(q *queue, o pipeline.Offset) (*record, error) {
	if err := checkRange(q, o, q.view()); err != nil {
		return nil, err
	}

	r := b.readers.Get().(*reader) //nolint:forcetypeassert // the pool has nothing else
	defer b.readers.Put(r)

	if err := r.one(b, q, o); err != nil {
		return nil, b.damage(q, o, err)
	}

	copied := r.fields[0].record()
	if copied.id == "" {
		copied.id = string(b.appendID(nil, q, o))
	}

	if copied.topic == "" {
		copied.topic = q.name.Topic
	}

	copied.props[consumer.PropOriginID] = copied.id
	copied.props[consumer.PropOriginTopic] = copied.topic
	copied.props[consumer.PropOriginQueue] = q.name.String()
	copied.props[consumer.PropOriginOffset] = strconv.FormatInt(int64(o), 10)

	return &copied, nil
}

// begun stores where the lease began to read when the group has no checkpoint yet: Stored must be able to tell that the
// returned offset is finished, and it can only do so beside an offset to go on from.
func (m *member) begun(tx *tx, l *lease) error {
	_, err := m.group.broker.checkpoint(m.group.id, l.queue)
	if !errors.Is(err, consumer.ErrNoCheckpoint) {
		return err
	}

	return tx.setCheckpoint(m.group.id, l.queue, consumer.Checkpoint{Next: max(l.start, 0)})
}
