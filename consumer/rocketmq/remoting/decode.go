package remoting

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// ReadFrame reads one frame, whichever of the two forms its header has. It fails with [io.EOF] when there is no further
// frame, with [io.ErrUnexpectedEOF] within one, and with [ErrFrame] when it is broken or passes a limit; r is of no more
// use then. The Command and its body share one new buffer, which belongs to the caller.
func ReadFrame(r io.Reader) (*Command, error) {
	var length [lengthSize]byte

	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err //nolint:wrapcheck // io.EOF between frames is a fact that callers compare, not a failure
	}

	total := binary.BigEndian.Uint32(length[:])
	if total < markSize || total > MaxFrame-lengthSize {
		return nil, fmt.Errorf("%w: a length of %d bytes", ErrFrame, total)
	}

	frame := make([]byte, total)
	if _, err := io.ReadFull(r, frame); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}

		return nil, fmt.Errorf("remoting: frame of %d bytes: %w", total, err)
	}

	return decode(frame)
}

// decode reads a frame without its length. The body is a part of frame.
func decode(frame []byte) (*Command, error) {
	mark := binary.BigEndian.Uint32(frame)
	size := int(mark & maxMarked)

	if size > MaxHeader || size > len(frame)-markSize {
		return nil, fmt.Errorf("%w: a header of %d bytes in %d", ErrFrame, size, len(frame))
	}

	head, body := frame[markSize:markSize+size], frame[markSize+size:]

	var (
		c   *Command
		err error
	)

	switch form := mark >> 24; form {
	case markJSON:
		c, err = decodeJSON(head)
	case markBinary:
		c, err = decodeBinary(head)
	default:
		err = fmt.Errorf("header of unknown form %d", form)
	}

	if err == nil && len(c.Ext) > MaxFields {
		err = fmt.Errorf("%d ext fields, at most %d", len(c.Ext), MaxFields)
	}

	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFrame, err)
	}

	c.Body = body

	return c, nil
}

func decodeJSON(head []byte) (*Command, error) {
	if c, usual := readFlat(head); usual {
		return c, nil
	}

	var h header
	if err := json.Unmarshal(head, &h); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}

	return &Command{
		Code: h.Code, Language: h.Language, Version: h.Version,
		Opaque: h.Opaque, Flag: h.Flag, Remark: h.Remark, Ext: h.Ext,
	}, nil
}
