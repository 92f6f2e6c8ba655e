package embedded

import (
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/pipeline"
)

// record is a message as it is stored.
type record struct {
	// stored is when it was appended, in nanoseconds of Unix time; it never falls inside of a queue.
	stored int64
	// pos is how many bytes of records were appended to the queue before it.
	pos int64
	// born is Message.Born in nanoseconds of Unix time.
	born int64
	// delivery counts the attempts, 1 for the first.
	delivery int64
	// id is empty where it follows from the record's place.
	id string
	// key and tag are the message's.
	key, tag string
	// topic is the topic of the first delivery; empty where it is the topic of the queue.
	topic string
	props map[string]string
	body  []byte
}

const recordFields = 10

// recordOf returns m as a record that is delivered for the first time. Only a zero Born is replaced.
func recordOf(m *pipeline.Message, now int64) record {
	born := now
	if !m.Born.IsZero() {
		born = m.Born.UnixNano()
	}

	return record{born: born, delivery: 1, id: m.ID, key: m.Key, tag: m.Tag, props: m.Props, body: m.Body}
}

// putRecord adds a record to a batch and returns the size of its value. The body is copied once, to where it stays.
func (e *encoder) putRecord(batch *pebble.Batch, key []byte, r *record) (int, error) {
	e.begin(recordFields)
	e.int(r.stored)
	e.int(r.pos)
	e.int(r.born)
	e.int(r.delivery)
	e.string(r.id)
	e.string(r.key)
	e.string(r.tag)
	e.string(r.topic)
	e.array(2 * len(r.props))

	for k, v := range r.props {
		e.string(k)
		e.string(v)
	}

	e.bytesLen(len(r.body))

	if e.err != nil {
		return 0, e.err
	}

	op := batch.SetDeferred(len(key), e.buf.Len()+len(r.body))
	copy(op.Key, key)
	copy(op.Value[copy(op.Value, e.buf.Bytes()):], r.body)
	seal(op.Key, op.Value)

	return len(op.Value), op.Finish()
}

// fields are the parts of a stored record, as slices of its value.
type fields struct {
	offset              pipeline.Offset
	stored, pos, born   int64
	delivery            int64
	id, key, tag, topic []byte
	props               [][]byte // key, value, key, value
	body                []byte
}

// record reads the fields of a stored record; props are appended to f.props[:0].
func (d *decoder) record(key, value []byte, f *fields) error {
	d.begin(key, value, recordFields)
	f.offset = 0
	f.stored, f.pos, f.born, f.delivery = d.int(), d.count(), d.int(), d.count()
	f.id, f.key, f.tag, f.topic = d.bytes(), d.bytes(), d.bytes(), d.bytes()
	f.props = f.props[:0]

	n := d.array()
	if n%2 != 0 {
		d.fail()
	}

	for range n {
		f.props = append(f.props, d.bytes())
	}

	f.body = d.bytes()

	return d.end()
}

// size is Message.Size of the message that f will be.
func (f *fields) size() int64 {
	n := len(f.body) + len(f.key) + len(f.tag) + len(f.id)
	for _, p := range f.props {
		n += len(p)
	}

	return int64(n)
}

// record returns f as a record of its own, with a map that may be changed. The body is shared.
func (f *fields) record() record {
	props := make(map[string]string, len(f.props)/2)
	for i := 0; i < len(f.props); i += 2 {
		props[string(f.props[i])] = string(f.props[i+1])
	}

	return record{
		stored: f.stored, pos: f.pos, born: f.born, delivery: f.delivery, id: string(f.id), key: string(f.key),
		tag: string(f.tag), topic: string(f.topic), props: props, body: f.body,
	}
}

func bornAt(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }
