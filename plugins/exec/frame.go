package exec

import (
	"encoding/binary"
	"fmt"
	"io"
)

// prefix is the length of a frame's length.
const prefix = 4

// readFrame reads a frame into the buffer, which it makes larger as bytes arrive, not as they are announced. It returns
// the payload, which is valid until the buffer is used again.
func readFrame(from io.Reader, buffer []byte, limit int) ([]byte, error) {
	var head [prefix]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return nil, err //nolint:wrapcheck // the caller puts the place around it
	}

	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(limit) {
		return nil, fmt.Errorf("a frame of %d bytes, the limit is %d", n, limit)
	}

	const step = 1 << 20

	buffer = buffer[:0]

	for want := int(n); len(buffer) < want; {
		have := len(buffer)
		buffer = grow(buffer, min(want-have, max(step, have)))

		if _, err := io.ReadFull(from, buffer[have:]); err != nil {
			return nil, fmt.Errorf("in a frame of %d bytes: %w", n, err)
		}
	}

	return buffer, nil
}

// grow returns b with n more bytes, which may hold anything.
func grow(b []byte, n int) []byte {
	if cap(b)-len(b) >= n {
		return b[:len(b)+n]
	}

	larger := make([]byte, len(b)+n)
	copy(larger, b)

	return larger
}
