package embedded

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Stored returns the checkpoint of a queue; see [consumer.Offsets]. What the group has sent back or dead-lettered counts as
// finished, whether or not it was committed since.
func (m *member) Stored(ctx context.Context, name pipeline.Queue) (consumer.Checkpoint, error) {
	b := m.group.broker

	if err := errors.Join(ctx.Err(), m.group.joined(m)); err != nil {
		return consumer.Checkpoint{}, err
	}

	if err := b.enter(); err != nil {
		return consumer.Checkpoint{}, err
	}
	defer b.leave()

	q, err := b.queue(name)
	if err != nil {
		return consumer.Checkpoint{}, err
	}

	c, err := b.checkpoint(m.group.id, q)
	if err != nil {
		return consumer.Checkpoint{}, err
	}

	var returned []consumer.Run

	err = b.store.scan(returnedKey(m.group.id, q.id, c.Next), returnedKey(m.group.id, q.id, maxOffset),
		func(key, _ []byte) (bool, error) {
			o := keyOffset(key)
			returned = append(returned, consumer.Run{From: o, To: o + 1})

			return true, nil
		})
	if err != nil {
		return consumer.Checkpoint{}, fmt.Errorf("embedded: reading what %q returned of %s: %w", m.group.name, name, err)
	}

	return c.With(returned...), nil
}

// checkpoint reads what a group has committed in a queue.
func (b *Broker) checkpoint(group uint32, q *queue) (consumer.Checkpoint, error) {
	r := b.readers.Get().(*reader) //nolint:forcetypeassert // the pool has nothing else
	defer b.readers.Put(r)

	var c consumer.Checkpoint

	key := checkpointKey(group, q.id)

	found, err := b.store.get(key, func(value []byte) (err error) {
		c, err = r.dec.checkpoint(key, value)

		return err
	})
	if err != nil {
		return c, fmt.Errorf("%w: %s: the checkpoint of %s: %w; commit one to go on from there",
			ErrDamaged, b.options.Dir, q.name, err)
	}

	if !found {
		return c, consumer.ErrNoCheckpoint
	}

	return c, nil
}

// Commit stores a checkpoint; see [consumer.Offsets]. It may go back, and up to the end of the queue.
func (m *member) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	if err := errors.Join(ctx.Err(), c.Validate()); err != nil {
		return err
	}

	return m.write(ctx, l.Queue, l.Epoch, func(tx *tx, l *lease) error {
		q := l.queue
		if end := q.view().end; c.Next > end {
			return fmt.Errorf("embedded: committing %d in %s, which ends at %d", c.Next, q.name, end)
		}

		if err := tx.setCheckpoint(m.group.id, q, c); err != nil {
			return err
		}

		return m.group.broker.store.scan(returnedKey(m.group.id, q.id, 0), returnedKey(m.group.id, q.id, c.Next),
			func(key, _ []byte) (bool, error) { return true, tx.batch.Delete(key, nil) })
	})
}

func (t *tx) setCheckpoint(group uint32, q *queue, c consumer.Checkpoint) error {
	key := checkpointKey(group, q.id)

	return t.set(key, func(e *encoder) ([]byte, error) { return e.checkpoint(key, c) })
}

// write does a write in the name of a lease. The group's mutex is held until the write is applied, so that the lease
// cannot end in between: whoever owns the queue next finds it.
func (m *member) write(ctx context.Context, q pipeline.Queue, epoch uint64, fill func(*tx, *lease) error) error {
	b := m.group.broker

	if err := b.enter(); err != nil {
		return err
	}
	defer b.leave()

	tx, err := m.apply(ctx, q, epoch, fill)
	if err != nil {
		return err
	}

	return tx.wait()
}

func (m *member) apply(ctx context.Context, q pipeline.Queue, epoch uint64, fill func(*tx, *lease) error) (*tx, error) {
	g := m.group

	g.mu.Lock()
	defer g.mu.Unlock()

	l, err := g.owned(m, q, epoch)
	if err != nil {
		return nil, err
	}

	tx, err := g.broker.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.abort()

	if err := fill(tx, l); err != nil {
		return nil, err
	}

	if err := tx.apply(); err != nil {
		return nil, err
	}

	return tx, nil
}
