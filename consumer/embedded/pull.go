package embedded

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Pull returns messages of an owned queue; see [consumer.Puller]. It waits for new messages for Options.HoldPull at most.
// Messages are returned when they are durable, so that an offset never means two messages.
func (m *member) Pull(
	ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, error) {
	if limit.Messages < 1 {
		return consumer.Batch{}, fmt.Errorf("embedded: pulling %s: the limit %+v lets nothing pass", l.Queue, limit)
	}

	owned, err := m.group.pulls(m, l, from)
	if err != nil {
		return consumer.Batch{}, err
	}

	b := m.group.broker

	batch, changed, err := b.pull(owned, from, limit)
	if err != nil || changed == nil {
		return batch, err
	}

	hold := time.NewTimer(b.options.HoldPull)
	defer hold.Stop()

	for {
		guard := b.guard()

		select {
		case <-changed:
		case <-hold.C:
			return batch, nil
		case <-owned.ended:
			return consumer.Batch{}, m.group.why(m)
		case <-b.closing:
			return consumer.Batch{}, consumer.ErrClosed
		case <-guard.failed:
			return consumer.Batch{}, guard.failure()
		case <-ctx.Done():
			return consumer.Batch{}, ctx.Err()
		}

		batch, changed, err = b.pull(owned, from, limit)
		if err != nil || changed == nil {
			return batch, err
		}
	}
}

// pull returns what there is. When there is nothing it returns an empty batch and a Go channel that is closed at the next
// change of the queue.
func (b *Broker) pull(
	l *lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, <-chan struct{}, error) {
	if err := b.enter(); err != nil {
		return consumer.Batch{}, nil, err
	}
	defer b.leave()

	q := l.queue

	state := q.view()
	if from == state.end {
		var changed <-chan struct{}

		if state, changed = q.watch(); from == state.end {
			return consumer.Batch{Next: from, End: from}, changed, nil
		}
	}

	if err := checkRange(q, from, state); err != nil {
		return consumer.Batch{}, nil, err
	}

	r := b.readers.Get().(*reader) //nolint:forcetypeassert // the pool has nothing else
	defer b.readers.Put(r)

	next, err := r.scan(b, q, state, from, limit)
	if next == from {
		return consumer.Batch{}, nil, b.damage(q, from, err)
	}

	return consumer.Batch{Messages: r.messages(q, l.epoch), Next: next, End: state.end}, nil, nil
}

// damage reports what is wrong with the record at an offset.
func (b *Broker) damage(q *queue, o pipeline.Offset, cause error) error {
	if err := b.store.guard.failure(); err != nil { // what was never written cannot be read
		return err
	}

	if err := checkRange(q, o, q.view()); err != nil { // it was pruned just now
		return err
	}

	b.counts.damaged.Add(1)

	return &consumer.DamagedError{Queue: q.name, Offset: o, Err: cause}
}

func checkRange(q *queue, o pipeline.Offset, s queueState) error {
	if o < s.first || o > s.end {
		return &consumer.OutOfRangeError{Queue: q.name, From: o, First: s.first, End: s.end}
	}

	return nil
}

// Find returns the offset of a start position; see [consumer.Puller]. Time is when a message was stored, by the clock of
// this machine. A message that cannot be read counts as late as the next one that can.
func (m *member) Find(ctx context.Context, name pipeline.Queue, at pipeline.Start) (pipeline.Offset, error) {
	b := m.group.broker

	if err := errors.Join(ctx.Err(), m.group.joined(m)); err != nil {
		return 0, err
	}

	if err := b.enter(); err != nil {
		return 0, err
	}
	defer b.leave()

	q, err := b.queue(name)
	if err != nil {
		return 0, err
	}

	state := q.view()

	switch t, timed := at.Time(); {
	case at.IsFirst():
		return state.first, nil
	case at.IsLast():
		return state.end, nil
	case timed:
		return b.search(q, state, func(f *fields) bool { return f.stored >= t.UnixNano() })
	default:
		return 0, fmt.Errorf("embedded: finding %s in %s: an unknown start position", at, name)
	}
}

// search returns the first offset whose record is over a limit that once passed stays passed, or the end. Records that
// cannot be read are taken for the next one that can.
func (b *Broker) search(q *queue, s queueState, over func(*fields) bool) (pipeline.Offset, error) {
	r := b.readers.Get().(*reader) //nolint:forcetypeassert // the pool has nothing else
	defer b.readers.Put(r)

	low, high := s.first, s.end
	for low < high {
		middle := low + (high-low)/2
		probe := middle

		err := errMissing
		for err != nil && probe < high {
			err = r.one(b, q, probe)
			probe++
		}

		if failed := b.store.guard.failure(); failed != nil {
			return 0, failed
		}

		if err != nil || over(&r.fields[0]) {
			high = middle
		} else {
			low = probe // behind the record that was looked at, which is not over
		}
	}

	return low, nil
}

// one reads the record at one offset.
func (r *reader) one(b *Broker, q *queue, o pipeline.Offset) error {
	var key [recordKeyLen]byte

	k := q.id.recordKey(key[:0], o)
	r.fields, r.ids = append(r.fields[:0], fields{}), r.ids[:0]

	found, err := b.store.get(k, func(value []byte) error {
		return r.dec.record(k, append([]byte(nil), value...), &r.fields[0])
	})
	if err == nil && !found {
		err = errMissing
	}

	if err == nil {
		r.fields[0].offset = o
	}

	return err
}
