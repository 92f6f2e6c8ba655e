package consumertest

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// record is a stored message. Its Origin says where it is stored and which delivery it is.
type record struct {
	message pipeline.Message
	stored  time.Time
	damage  error
}

// queueLog is one queue. The lock of its broker guards it.
type queueLog struct {
	queue pipeline.Queue
	// records are sorted by offset. Those below first are pruned: no pull sees them, but tests do.
	records    []record
	first, end pipeline.Offset
	// changed is closed, and replaced, when the end moves.
	changed chan struct{}
}

// copyOf returns a copy that shares nothing with m.
func copyOf(m *pipeline.Message) pipeline.Message {
	c := m.Clone()
	c.Body = bytes.Clone(m.Body)

	return *c
}

// append stores a record behind a gap of offsets.
func (q *queueLog) append(r record, gap pipeline.Offset) {
	r.message.Origin.Queue = q.queue
	r.message.Origin.Offset = q.end + gap
	q.records = append(q.records, r)
	q.moveEnd(q.end + gap + 1)
}

func (q *queueLog) moveEnd(end pipeline.Offset) {
	q.end = end
	close(q.changed)
	q.changed = make(chan struct{})
}

// at returns the place of the first record at or above an offset.
func (q *queueLog) at(o pipeline.Offset) int {
	i, _ := slices.BinarySearchFunc(q.records, o, func(r record, o pipeline.Offset) int {
		return cmp.Compare(r.message.Origin.Offset, o)
	})

	return i
}

// find returns the record at an offset, nil when there is none (any more).
func (q *queueLog) find(o pipeline.Offset) *record {
	i := q.at(o)
	if o < q.first || i == len(q.records) || q.records[i].message.Origin.Offset != o {
		return nil
	}

	return &q.records[i]
}

// read returns the messages from an offset on; none, with Next equal to from, when there is nothing behind it.
func (q *queueLog) read(from pipeline.Offset, limit consumer.Limit) (consumer.Batch, error) {
	if from < q.first || from > q.end {
		return consumer.Batch{}, &consumer.OutOfRangeError{Queue: q.queue, From: from, First: q.first, End: q.end}
	}

	batch := consumer.Batch{Next: q.end, End: q.end}
	room := limit.Bytes

	for i := q.at(from); i < len(q.records); i++ {
		r := &q.records[i]
		room -= int64(r.message.Size())

		if n := len(batch.Messages); n > 0 && (n >= limit.Messages || room < 0 || r.damage != nil) {
			batch.Next = r.message.Origin.Offset

			break
		}

		if r.damage != nil {
			return consumer.Batch{}, &consumer.DamagedError{
				Queue: q.queue, Offset: r.message.Origin.Offset, Err: r.damage,
			}
		}

		m := copyOf(&r.message)
		batch.Messages = append(batch.Messages, &m)
	}

	return batch, nil
}

// since returns the offset of the first record stored at t or later, the end when there is none.
func (q *queueLog) since(t time.Time) pipeline.Offset {
	for i := q.at(q.first); i < len(q.records); i++ {
		if r := &q.records[i]; !r.stored.Before(t) {
			return r.message.Origin.Offset
		}
	}

	return q.end
}
