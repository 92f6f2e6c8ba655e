package remoting

import (
	"encoding/binary"
	"fmt"
	"slices"
	"unicode/utf8"
)

// The limits of a frame, for both directions.
const (
	// MaxFrame is the most bytes of a frame, its length field included: that of the servers.
	MaxFrame = 16 << 20
	// MaxHeader is the most bytes of a header. The longest that is known is a message's properties (32 KiB) in JSON; the
	// limit is a guess well above it.
	MaxHeader = 256 << 10
	// MaxFields is the most ext fields of a header; a guess well above the thirty of the longest known one.
	MaxFields = 1024
)

// A frame is: total (4 bytes, what follows), mark (1 byte: how the header is written; 3 bytes: its length), header, body.
const (
	lengthSize = 4
	markSize   = 4

	markJSON   = 0
	markBinary = 1
	maxMarked  = 1<<24 - 1

	usualHeader = 512 // bytes that the header of most requests does not exceed
)

// header is the JSON form of a header. Members that are not named here are ignored when it is read.
type header struct {
	Code     int               `json:"code"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Opaque   int32             `json:"opaque"`
	Flag     int32             `json:"flag"`
	Remark   string            `json:"remark,omitempty"`
	Ext      map[string]string `json:"extFields,omitempty"`
}

// AppendFrame appends c as a frame with a JSON header to dst. It fails with [ErrTooLarge] when the frame would pass a
// limit, and with [ErrFrame] when a text is not valid UTF-8, which JSON would change silently.
func AppendFrame(dst []byte, c *Command) ([]byte, error) {
	if len(c.Ext) > MaxFields {
		return nil, fmt.Errorf("%w: %d ext fields of at most %d", ErrTooLarge, len(c.Ext), MaxFields)
	}

	if !utf8.ValidString(c.Remark) {
		return nil, fmt.Errorf("%w: the remark is not valid UTF-8", ErrFrame)
	}

	for key, value := range c.Ext {
		if !utf8.ValidString(key) || !utf8.ValidString(value) {
			return nil, fmt.Errorf("%w: field %q is not valid UTF-8", ErrFrame, key)
		}
	}

	begin := len(dst)
	dst = slices.Grow(dst, lengthSize+markSize+usualHeader+len(c.Body))
	dst = appendHeader(append(dst, make([]byte, lengthSize+markSize)...), c)

	size := len(dst) - begin - lengthSize - markSize
	if size > MaxHeader {
		return nil, fmt.Errorf("%w: a header of %d bytes, at most %d", ErrTooLarge, size, MaxHeader)
	}

	total := markSize + size + len(c.Body)
	if total > MaxFrame-lengthSize {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, total+lengthSize, MaxFrame)
	}

	binary.BigEndian.PutUint32(dst[begin:], uint32(total))
	binary.BigEndian.PutUint32(dst[begin+lengthSize:], uint32(markJSON<<24|size))

	return append(dst, c.Body...), nil
}
