package exec

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/millrace/millrace/pipeline"
)

// version is the version of the protocol; docs/exec.md describes it.
const version = 1

// writer makes frames. Its buffer is used for one frame after the other.
type writer struct {
	buffer bytes.Buffer
	header bytes.Buffer
	enc    *msgpack.Encoder
	inner  *msgpack.Encoder
	err    error
}

func newWriter() *writer {
	w := &writer{}
	w.enc, w.inner = msgpack.NewEncoder(&w.buffer), msgpack.NewEncoder(&w.header)

	w.enc.UseCompactInts(true)
	w.inner.UseCompactInts(true)

	return w
}

// begin starts a frame.
func (w *writer) begin() {
	const keep = 4 << 20
	if w.buffer.Cap() > keep {
		w.buffer = bytes.Buffer{}
	}

	w.err = nil
	w.buffer.Reset()
	w.buffer.Write(make([]byte, prefix))
}

// note keeps the first error; writing to a buffer has none.
func (w *writer) note(err error) {
	if w.err == nil {
		w.err = err
	}
}

// end returns the frame.
func (w *writer) end() ([]byte, error) {
	frame := w.buffer.Bytes()
	binary.BigEndian.PutUint32(frame, uint32(len(frame)-prefix))

	return frame, w.err
}

// hello is what the job says first.
func (w *writer) hello(limit int) ([]byte, error) {
	w.begin()
	w.note(w.enc.EncodeMapLen(2))
	w.note(w.enc.EncodeString("millrace"))
	w.note(w.enc.EncodeInt(version))
	w.note(w.enc.EncodeString("frame"))
	w.note(w.enc.EncodeInt(int64(limit)))

	return w.end()
}

// batch makes a frame of the first messages of batch, as many as fit into the limit, and returns their number: 0 when
// the first does not fit.
func (w *writer) batch(number uint64, batch []*pipeline.Message, limit int) (frame []byte, n int, err error) {
	const envelope = 32 // more than everything of the frame that is no message

	size := envelope

	for _, m := range batch {
		if size += sizeOf(m); size > limit {
			break
		}

		n++
	}

	w.begin()
	w.note(w.enc.EncodeArrayLen(3))
	w.note(w.enc.EncodeString("batch"))
	w.note(w.enc.EncodeUint(number))
	w.note(w.enc.EncodeArrayLen(n))

	for _, m := range batch[:n] {
		w.message(m)
	}

	frame, err = w.end()

	return frame, n, err
}

// sizeOf is at least what a message takes in a frame.
func sizeOf(m *pipeline.Message) int {
	const (
		fixed = 128 // names of the fields, numbers and lengths
		pair  = 10  // lengths of a property
	)

	return fixed + m.Size() + len(m.Topic) + pair*len(m.Props)
}

// message is a pair: all but the body, packed into bytes so that a program that does not look at it can skip it, and the
// body.
func (w *writer) message(m *pipeline.Message) {
	w.header.Reset()

	in, fields := w.inner, 2
	for _, text := range [...]string{m.ID, m.Topic, m.Key, m.Tag} {
		if text != "" {
			fields++
		}
	}

	if len(m.Props) > 0 {
		fields++
	}

	w.note(in.EncodeMapLen(fields))
	w.field("id", m.ID)
	w.field("topic", m.Topic)
	w.field("key", m.Key)
	w.field("tag", m.Tag)

	if len(m.Props) > 0 {
		w.note(in.EncodeString("props"))
		w.note(in.EncodeMapLen(len(m.Props)))

		for _, name := range slices.Sorted(maps.Keys(m.Props)) {
			w.note(in.EncodeString(name))
			w.note(in.EncodeString(m.Props[name]))
		}
	}

	w.note(in.EncodeString("born"))
	w.note(in.EncodeInt(unixNano(m.Born)))
	w.note(in.EncodeString("delivery"))
	w.note(in.EncodeInt(int64(m.Origin.Delivery)))

	w.note(w.enc.EncodeArrayLen(2))
	w.note(w.enc.EncodeBytes(w.header.Bytes()))
	w.bytes(m.Body)
}

func (w *writer) field(name, value string) {
	if value != "" {
		w.note(w.inner.EncodeString(name))
		w.note(w.inner.EncodeString(value))
	}
}

// bytes writes no bytes as no bytes, not as nil.
func (w *writer) bytes(b []byte) {
	w.note(w.enc.EncodeBytesLen(len(b)))
	w.buffer.Write(b)
}

// unixNano is 0 for a time that is not set.
func unixNano(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}

	return t.UnixNano()
}

// readHello fails when the program speaks another version.
func readHello(payload []byte) error {
	d := msgpack.NewDecoder(bytes.NewReader(payload))

	n, err := d.DecodeMapLen()
	if err != nil || n < 1 {
		return errors.New("the program said something else than hello")
	}

	name, err := d.DecodeString()
	if err != nil || name != "millrace" {
		return errors.New("the program said something else than hello")
	}

	v, err := d.DecodeInt64()
	if err != nil {
		return fmt.Errorf("the version in the program's hello: %w", err)
	}

	if v != version {
		return fmt.Errorf("the program speaks version %d of the protocol, this is version %d", v, version)
	}

	return nil
}
