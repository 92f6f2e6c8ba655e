package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
)

var errCut = errors.New("header ends too early")

// decodeBinary reads a header in the binary form: code 2, language 1, version 2, opaque 4, flag 4, remark (its length 4),
// and fields (their length 4), each a key (its length 2) and a value (its length 4). We never write it: it cannot hold all
// codes. What stands behind the fields is ignored, so that it may be used some day.
func decodeBinary(head []byte) (*Command, error) {
	r := &reader{rest: head}
	c := &Command{
		Code:     int(int16(r.uint16())),
		Language: language(r.take(1)),
		Version:  int(int16(r.uint16())),
		Opaque:   int32(r.uint32()),
		Flag:     int32(r.uint32()),
		Remark:   string(r.sized32()),
	}

	fields := &reader{rest: r.sized32()}
	if r.err != nil {
		return nil, r.err
	}

	for len(fields.rest) > 0 {
		key := string(fields.take(int(fields.uint16())))
		value := string(fields.sized32())

		if fields.err != nil {
			return nil, fmt.Errorf("field %d: %w", len(c.Ext), fields.err)
		}

		if c.Ext == nil {
			c.Ext = map[string]string{}
		}

		if c.Ext[key] = value; len(c.Ext) > MaxFields {
			return nil, fmt.Errorf("more than %d fields", MaxFields)
		}
	}

	return c, nil
}

// reader takes values off the front of a buffer. After the first that is cut off it returns zeros, and err says so.
type reader struct {
	rest []byte
	err  error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.rest) {
		r.err, r.rest = errCut, nil

		return nil
	}

	taken := r.rest[:n]
	r.rest = r.rest[n:]

	return taken
}

func (r *reader) uint16() uint16 {
	if b := r.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}

	return 0
}

func (r *reader) uint32() uint32 {
	if b := r.take(4); b != nil {
		return binary.BigEndian.Uint32(b)
	}

	return 0
}

// sized32 returns what a length of 4 bytes announces. A length with the sign bit is a negative one.
func (r *reader) sized32() []byte { return r.take(int(int32(r.uint32()))) }

// language returns the name of an ordinal.
func language(ordinal []byte) string {
	names := [...]string{
		"JAVA", "CPP", "DOTNET", "PYTHON", "DELPHI", "ERLANG", "RUBY", "OTHER", "HTTP", "GO", "PHP", "OMS", "RUST", "NODE_JS",
	}

	if len(ordinal) == 1 && int(ordinal[0]) < len(names) {
		return names[ordinal[0]]
	}

	return "OTHER"
}
