package embedded

import (
	"encoding/binary"
	"math"
)

// decoder reads the fields of one payload, in the kinds of msgpack that the broker writes: integers, strings, byte strings
// and arrays. It exists beside the library that the encoder uses since it is on the path of every pull and copies nothing.
// Nothing in a payload is trusted: a length is believed only as far as there are bytes. The first error sticks.
type decoder struct {
	// rest is what was not read yet.
	rest []byte
	err  error
}

// begin opens an envelope with n fields.
func (d *decoder) begin(key, value []byte, n int) {
	d.rest, d.err = unseal(key, value)

	if got := d.array(); d.err == nil && got != n {
		d.err = errFields
	}
}

// take returns the next n bytes, or nil when there are fewer.
func (d *decoder) take(n uint64) []byte {
	if d.err != nil {
		return nil
	}

	if n > uint64(len(d.rest)) {
		d.err = errShort

		return nil
	}

	taken := d.rest[:n:n]
	d.rest = d.rest[n:]

	return taken
}

// code reads the byte that says what comes.
func (d *decoder) code() byte {
	if b := d.take(1); b != nil {
		return b[0]
	}

	return 0
}

// number reads an unsigned big-endian number of 1, 2, 4 or 8 bytes.
func (d *decoder) number(bytes uint64) uint64 {
	b := d.take(bytes)

	switch len(b) {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.BigEndian.Uint16(b))
	case 4:
		return uint64(binary.BigEndian.Uint32(b))
	case 8:
		return binary.BigEndian.Uint64(b)
	default:
		return 0
	}
}

func (d *decoder) int() int64 {
	switch c := d.code(); {
	case c <= 0x7f:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c))
	case c >= 0xcc && c <= 0xcf: // unsigned
		n := d.number(1 << (c - 0xcc))
		if n > math.MaxInt64 {
			d.fail()
		}

		return int64(n)
	case c == 0xd0:
		return int64(int8(d.number(1)))
	case c == 0xd1:
		return int64(int16(d.number(2)))
	case c == 0xd2:
		return int64(int32(d.number(4)))
	case c == 0xd3:
		return int64(d.number(8))
	default:
		d.fail()

		return 0
	}
}

// count reads a number that is an offset, a count or a size: from 0 to maxOffset.
func (d *decoder) count() int64 {
	n := d.int()
	if n < 0 || n > int64(maxOffset) {
		d.fail()
	}

	return n
}

// id reads a number that names something in keys.
func (d *decoder) id() uint32 {
	n := d.count()
	if n > math.MaxUint32 {
		d.fail()
	}

	return uint32(n)
}

// array reads the length of an array; every element takes a byte at least.
func (d *decoder) array() int {
	var n uint64

	switch c := d.code(); {
	case c >= 0x90 && c <= 0x9f:
		n = uint64(c & 0x0f)
	case c == 0xdc:
		n = d.number(2)
	case c == 0xdd:
		n = d.number(4)
	default:
		d.fail()
	}

	if d.err == nil && n > uint64(len(d.rest)) {
		d.err = errShort
	}

	if d.err != nil {
		return 0
	}

	return int(n)
}

// bytes reads a string or byte string: the result is a part of the value.
func (d *decoder) bytes() []byte {
	var n uint64

	switch c := d.code(); {
	case c >= 0xa0 && c <= 0xbf:
		n = uint64(c & 0x1f)
	case c >= 0xc4 && c <= 0xc6: // bytes
		n = d.number(1 << (c - 0xc4))
	case c >= 0xd9 && c <= 0xdb: // string
		n = d.number(1 << (c - 0xd9))
	default:
		d.fail()
	}

	return d.take(n)
}

// end returns the first error, or one for bytes that are left over.
func (d *decoder) end() error {
	if len(d.rest) > 0 {
		d.fail()
	}

	return d.err
}

func (d *decoder) fail() {
	if d.err == nil {
		d.err = errFields
	}
}
