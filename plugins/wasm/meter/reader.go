package meter

import (
	"errors"
	"fmt"
	"math"
)

// reader takes a module apart. It keeps the first error; after one, there is nothing left to read.
type reader struct {
	bytes []byte
	known numbers
	err   error
}

// numbers are how many a module has of what it names by numbers.
type numbers struct{ types, functions, globals uint32 }

var errEnd = errors.New("it ends too early")

func (r *reader) failf(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}

	r.bytes = nil
}

// take returns the next n bytes.
func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.bytes)) {
		r.failf("%w", errEnd)

		return nil
	}

	taken := r.bytes[:n:n]
	r.bytes = r.bytes[n:]

	return taken
}

func (r *reader) byte() byte {
	if b := r.take(1); len(b) > 0 {
		return b[0]
	}

	return 0
}

// u32 reads a number without a sign.
func (r *reader) u32() uint32 {
	var n uint64

	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift

		if b < 0x80 {
			if n > 1<<32-1 {
				break
			}

			return uint32(n)
		}
	}

	r.failf("a number that is too large")

	return 0
}

// index reads the number of one of n. A larger one could be that of what is added to the module: whoever could name that would
// stop the counting.
func (r *reader) index(n uint32) {
	if i := r.u32(); i >= n {
		r.failf("number %d of what there are %d of", i, n)
	}
}

// blockType reads what a block takes and returns: the number of a type, or a negative number for what needs none.
func (r *reader) blockType() {
	var n uint64

	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		n |= uint64(b&0x7f) << shift

		if b >= 0x80 {
			continue
		}

		if negative := b&0x40 != 0; !negative && n >= uint64(r.known.types) {
			r.failf("number %d of %d types", n, r.known.types)
		}

		return
	}

	r.failf("a number that is too large")
}

// skip skips a number of any width and sign.
func (r *reader) skip() {
	for range 10 {
		if r.byte() < 0x80 {
			return
		}
	}

	r.failf("a number that is too large")
}

// limits reads the least and the greatest size of a memory or a table.
func (r *reader) limits() (least, most uint32) {
	flags := r.byte()
	if flags > 1 {
		r.failf("limits of kind %d", flags)
	}

	least, most = r.u32(), math.MaxUint32
	if flags == 1 {
		most = r.u32()
	}

	return least, most
}

// each reads a number of elements, each of which is at least a byte long.
func (r *reader) each(read func()) {
	n := r.u32()
	if uint64(n) > uint64(len(r.bytes)) {
		r.failf("%d of what takes no more than %d bytes", n, len(r.bytes))
	}

	for range n {
		if r.err != nil {
			return
		}

		read()
	}
}

// expect skips a byte that can only be this one.
func (r *reader) expect(want byte) {
	if got := r.byte(); got != want {
		r.failf("%#x in the place of %#x", got, want)
	}
}

// valueType skips a type.
func (r *reader) valueType() {
	const nullable, notNull = 0x63, 0x64

	if b := r.byte(); b == nullable || b == notNull {
		r.skip()
	}
}

// expression skips instructions up to the end.
func (r *reader) expression() {
	for r.err == nil {
		if r.instruction() == opEnd {
			return
		}
	}
}

// unsigned appends a number to b.
func unsigned(b []byte, n uint32) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}

	return append(b, byte(n))
}

// signed appends a number with a sign to b.
func signed(b []byte, n int32) []byte {
	for ; n < -64 || n > 63; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}

	return append(b, byte(n)&0x7f)
}

// sized returns content behind its size.
func sized(content []byte) []byte { return append(unsigned(nil, uint32(len(content))), content...) }
