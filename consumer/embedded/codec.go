package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"

	"github.com/vmihailenco/msgpack/v5"
)

// Every value in the store is an envelope: a version byte, a CRC-32C, and a msgpack array with its fields in a fixed
// order. The sum covers the key too, so that a value is good only in its own place.
const (
	version     = 1
	envelopeLen = 1 + crc32.Size
)

// Errors of decoding. They are causes inside of a consumer.DamagedError or ErrDamaged.
var (
	errShort   = errors.New("it is cut short")
	errSum     = errors.New("its checksum does not fit")
	errVersion = errors.New("it has an unknown version")
	errFields  = errors.New("its fields make no sense")
)

// castagnoli is the table of CRC-32C, for which processors have an instruction.
//
//nolint:gochecknoglobals // a constant table
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(key, payload []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, payload)
}

// seal fills in the head of an envelope whose payload is in place.
func seal(key, value []byte) {
	value[0] = version
	binary.BigEndian.PutUint32(value[1:], checksum(key, value[envelopeLen:]))
}

// unseal returns the payload of an envelope.
func unseal(key, value []byte) ([]byte, error) {
	switch {
	case len(value) < envelopeLen:
		return nil, errShort
	case value[0] != version:
		return nil, fmt.Errorf("%w (%d, this program knows %d)", errVersion, value[0], version)
	case binary.BigEndian.Uint32(value[1:]) != checksum(key, value[envelopeLen:]):
		return nil, errSum
	}

	return value[envelopeLen:], nil
}

// encoder writes the fields of values one after the other. It belongs to whoever writes to the store.
type encoder struct {
	buf bytes.Buffer
	mp  *msgpack.Encoder
	err error
}

func newEncoder() *encoder {
	e := &encoder{}
	e.mp = msgpack.NewEncoder(&e.buf)

	return e
}

// begin starts a value of n fields, with room for its envelope.
func (e *encoder) begin(n int) {
	var head [envelopeLen]byte

	e.err = nil
	e.buf.Reset()
	e.buf.Write(head[:])
	e.array(n)
}

func (e *encoder) array(n int)     { e.keep(e.mp.EncodeArrayLen(n)) }
func (e *encoder) int(n int64)     { e.keep(e.mp.EncodeInt(n)) }
func (e *encoder) string(s string) { e.keep(e.mp.EncodeString(s)) }

// bytesLen starts a byte string; whoever ends the value adds the bytes.
func (e *encoder) bytesLen(n int) { e.keep(e.mp.EncodeBytesLen(n)) }

func (e *encoder) keep(err error) {
	if e.err == nil {
		e.err = err
	}
}

// sealed returns the value that was begun, in its envelope. It is good until the next begin.
func (e *encoder) sealed(key []byte) ([]byte, error) {
	if e.err != nil {
		return nil, fmt.Errorf("embedded: encoding a value: %w", e.err)
	}

	value := e.buf.Bytes()
	seal(key, value)

	return value, nil
}

// decoder reads the fields of one payload. Nothing in it is trusted: a length is believed only as far as there are bytes.
type decoder struct {
	payload []byte
	src     bytes.Reader
	mp      *msgpack.Decoder
	err     error
}

func newDecoder() *decoder {
	d := &decoder{}
	d.mp = msgpack.NewDecoder(&d.src)

	return d
}

// begin opens an envelope with n fields.
func (d *decoder) begin(key, value []byte, n int) {
	d.payload, d.err = unseal(key, value)
	d.src.Reset(d.payload)

	if got := d.array(); d.err == nil && got != n {
		d.err = errFields
	}
}

// array reads the length of an array; every element takes a byte at least.
func (d *decoder) array() int {
	if d.err != nil {
		return 0
	}

	n, err := d.mp.DecodeArrayLen()
	d.keep(err)

	if d.err == nil && (n < 0 || n > d.src.Len()) {
		d.err = errShort
	}

	if d.err != nil {
		return 0
	}

	return n
}

func (d *decoder) int() int64 {
	if d.err != nil {
		return 0
	}

	n, err := d.mp.DecodeInt64()
	d.keep(err)

	return n
}

// count reads a number that is an offset, a count or a size: from 0 to maxOffset.
func (d *decoder) count() int64 {
	n := d.int()
	if d.err == nil && (n < 0 || n > int64(maxOffset)) {
		d.err = errFields
	}

	return n
}

// id reads a number that names something in keys.
func (d *decoder) id() uint32 {
	n := d.count()
	if d.err == nil && n > math.MaxUint32 {
		d.err = errFields
	}

	return uint32(n)
}

// bytes reads a string or byte string without copying it: the result is a part of the value.
func (d *decoder) bytes() []byte {
	if d.err != nil {
		return nil
	}

	n, err := d.mp.DecodeBytesLen()
	d.keep(err)

	if d.err == nil && (n < 0 || n > d.src.Len()) {
		d.err = errShort
	}

	if d.err != nil {
		return nil
	}

	at := len(d.payload) - d.src.Len()
	_, err = d.src.Seek(int64(n), io.SeekCurrent)
	d.keep(err)

	return d.payload[at : at+n : at+n]
}

// end returns the first error, or one for bytes that are left over.
func (d *decoder) end() error {
	if d.err == nil && d.src.Len() > 0 {
		d.err = errFields
	}

	return d.err
}

func (d *decoder) keep(err error) {
	if d.err == nil && err != nil {
		d.err = fmt.Errorf("%w: %w", errFields, err)
	}
}
