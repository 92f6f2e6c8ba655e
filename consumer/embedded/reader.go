package embedded

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// errMissing is the damage of an offset that the queue should hold and that has no record.
var errMissing = errors.New("it is missing")

// smallestChunk is the least that is allocated for the bytes of a batch.
const smallestChunk = 512

// reader scans records. A batch costs it four allocations, whatever the number of its messages (and one for each message
// that has properties): the bytes, the texts, the messages, and the pointers to them. It belongs to one call at a time.
type reader struct {
	dec    decoder
	fields []fields
	// ids holds the ids that follow from the places of records.
	ids   []byte
	chunk []byte
}

// scan reads the records of q from an offset below s.end until a limit is reached. It returns the offset behind them, and
// what is wrong with the record there when that is why it stopped.
func (r *reader) scan(b *Broker, q *queue, s queueState, from pipeline.Offset, limit consumer.Limit) (pipeline.Offset, error) {
	var low, high [recordKeyLen]byte

	it, err := b.store.db.NewIter(&pebble.IterOptions{
		LowerBound: q.id.recordKey(low[:0], from),
		UpperBound: q.id.recordKey(high[:0], s.end),
	})
	if err != nil {
		return from, fmt.Errorf("embedded: reading: %w", err)
	}

	r.fields, r.ids = r.fields[:0], r.ids[:0]
	r.reserve(s, from, limit)

	next, size := from, int64(0)

	var full bool

	for ok := it.First(); ok && err == nil && !full; ok = it.Next() {
		if next, err = r.record(b, q, it, next); err != nil {
			break
		}

		size += r.fields[len(r.fields)-1].size()
		full = size >= limit.Bytes || len(r.fields) >= limit.Messages

		if size > limit.Bytes && len(r.fields) > 1 { // the last one is too much
			r.fields = r.fields[:len(r.fields)-1]
			next--
		}
	}

	err = errors.Join(err, it.Close())
	if err == nil && !full && next < s.end {
		err = errMissing
	}

	return next, err
}

// record takes the record that the iterator stands at, which should have the offset next, and returns the one after it.
func (r *reader) record(b *Broker, q *queue, it *pebble.Iterator, next pipeline.Offset) (pipeline.Offset, error) {
	key := it.Key()
	if keyOffset(key) != next {
		return next, errMissing
	}

	value, err := it.ValueAndErr()
	if err != nil {
		return next, fmt.Errorf("embedded: reading: %w", err)
	}

	if len(r.fields) < cap(r.fields) {
		r.fields = r.fields[:len(r.fields)+1] // with the props of its last use
	} else {
		r.fields = append(r.fields, fields{})
	}

	f := &r.fields[len(r.fields)-1]
	if err := r.dec.record(key, r.keep(value), f); err != nil {
		r.fields = r.fields[:len(r.fields)-1]

		return next, err
	}

	f.offset = next
	if len(f.id) == 0 {
		at := len(r.ids)
		r.ids = b.appendID(r.ids, q, next)
		f.id = r.ids[at:]
	}

	return next + 1, nil
}

// appendID appends the id of a message that has none of its own: its place.
func (b *Broker) appendID(to []byte, q *queue, o pipeline.Offset) []byte {
	to = append(append(to, q.name.Topic...), '/')
	to = append(strconv.AppendInt(to, int64(q.name.ID), 10), '/')
	to = append(strconv.AppendInt(to, int64(o), 10), '@')

	return append(to, b.dir.store...)
}

// reserve makes room for about what will be read.
func (r *reader) reserve(s queueState, from pipeline.Offset, limit consumer.Limit) {
	count := min(int64(limit.Messages), int64(s.end-from))
	average := (s.endPos-s.firstPos)/int64(s.end-s.first) + 1
	limited := min(count*average, limit.Bytes)
	r.chunk = make([]byte, 0, max(limited+limited/8, smallestChunk))
}

// keep copies a value to where the batch keeps it. Room that is used up is followed by new room, so nothing moves.
func (r *reader) keep(value []byte) []byte {
	if cap(r.chunk)-len(r.chunk) < len(value) {
		r.chunk = make([]byte, 0, max(cap(r.chunk)/2, len(value)))
	}

	at := len(r.chunk)
	r.chunk = append(r.chunk, value...)

	return r.chunk[at:]
}

// messages turns what was scanned into messages, and forgets it.
func (r *reader) messages(q *queue, epoch uint64) []*pipeline.Message {
	texts := r.texts()
	slab := make([]pipeline.Message, len(r.fields))
	messages := make([]*pipeline.Message, len(r.fields))

	for i := range r.fields {
		f, m := &r.fields[i], &slab[i]
		m.ID, m.Key, m.Tag, m.Topic = texts.cut(f.id), texts.cut(f.key), texts.cut(f.tag), texts.cut(f.topic)

		if m.Topic == "" {
			m.Topic = q.name.Topic
		}

		if len(f.props) > 0 {
			m.Props = make(map[string]string, len(f.props)/2)
		}

		for p := 0; p < len(f.props); p += 2 {
			k := texts.cut(f.props[p])
			m.Props[k] = texts.cut(f.props[p+1])
		}

		m.Body, m.Born = f.body, bornAt(f.born)
		m.Origin = pipeline.Origin{Queue: q.name, Offset: f.offset, Epoch: epoch, Delivery: int(f.delivery)}
		messages[i] = m

		clear(f.props)
		*f = fields{props: f.props[:0]}
	}

	r.chunk = nil

	return messages
}

// texts returns all texts of the scanned records as one string, in the order in which messages cuts them off again.
func (r *reader) texts() texts {
	n := 0
	for i := range r.fields {
		f := &r.fields[i]
		n += int(f.size()) - len(f.body) + len(f.topic)
	}

	var all strings.Builder

	all.Grow(n)

	for i := range r.fields {
		f := &r.fields[i]
		for _, part := range [...][]byte{f.id, f.key, f.tag, f.topic} {
			all.Write(part)
		}

		for _, p := range f.props {
			all.Write(p)
		}
	}

	return texts(all.String())
}

type texts string

// cut takes as many bytes off the front as part has.
func (t *texts) cut(part []byte) string {
	s := string((*t)[:len(part)])
	*t = (*t)[len(part):]

	return s
}
