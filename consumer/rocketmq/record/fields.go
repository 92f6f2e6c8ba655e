package record

import (
	"encoding/binary"
	"net/netip"
)

// fields reads a record field by field. When one does not fit, bad is set and the rest reads as zero.
type fields struct {
	in  []byte
	bad bool
}

// bytes returns the next n bytes, a part of the input.
func (f *fields) bytes(n int64) []byte {
	if n < 0 || n > int64(len(f.in)) {
		f.bad, f.in = true, nil

		return nil
	}

	part := f.in[:n:n]
	f.in = f.in[n:]

	return part
}

func (f *fields) uint8() uint8 {
	if b := f.bytes(1); b != nil {
		return b[0]
	}

	return 0
}

func (f *fields) uint16() uint16 {
	if b := f.bytes(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}

	return 0
}

func (f *fields) uint32() uint32 {
	if b := f.bytes(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}

	return 0
}

func (f *fields) int64() int64 {
	if b := f.bytes(8); b != nil {
		return int64(binary.BigEndian.Uint64(b))
	}

	return 0
}

// host reads an address and its port. It reports false for a port that there is not.
func (f *fields) host(v6 bool) (host netip.AddrPort, ok bool) {
	size := int64(4)
	if v6 {
		size = 16
	}

	addr, _ := netip.AddrFromSlice(f.bytes(size))
	port := f.uint32()

	return netip.AddrPortFrom(addr, uint16(port)), port < 1<<16
}
