package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

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
