package record

import (
	"encoding/binary"
	"fmt"
	"math"
)

// entryHead is what comes before the body of an entry: total, magic, checksum, flag, and the length of the body.
const entryHead = 4 * 5

// Entry is one message of a batch, as producers send them. Topic, queue, times and hosts are the batch's.
type Entry struct {
	// Flag is the producer's own.
	Flag  int32
	Body  []byte
	Props Properties
}

// Size returns the bytes that the entry takes in a batch.
func (e Entry) Size() int { return entryHead + len(e.Body) + 2 + len(e.Props) }

// AppendEntry appends an entry to the body of a batch. It fails with [ErrTooLarge], and then appends nothing.
func AppendEntry(dst []byte, e Entry) ([]byte, error) {
	if len(e.Props) > MaxProps {
		return dst, fmt.Errorf("%w: %d bytes of properties; at most %d fit", ErrTooLarge, len(e.Props), MaxProps)
	}

	if len(e.Body) > math.MaxInt32-entryHead-2-MaxProps {
		return dst, fmt.Errorf("%w: a body of %d bytes", ErrTooLarge, len(e.Body))
	}

	be := binary.BigEndian
	dst = be.AppendUint32(dst, uint32(e.Size()))
	dst = be.AppendUint64(dst, 0) // no magic, no checksum: brokers look at neither
	dst = be.AppendUint32(dst, uint32(e.Flag))
	dst = be.AppendUint32(dst, uint32(len(e.Body)))
	dst = append(dst, e.Body...)
	dst = be.AppendUint16(dst, uint16(len(e.Props)))

	return append(dst, e.Props...), nil
}

// CutEntry returns the first entry of a batch and what follows it. The entry's body is a part of batch. The error says only
// what is wrong; an empty batch has no first entry.
func CutEntry(batch []byte) (e Entry, rest []byte, err error) {
	if len(batch) < entryHead+2 {
		return e, nil, errShort
	}

	be := binary.BigEndian

	total := be.Uint32(batch)
	if uint64(total) > uint64(len(batch)) {
		return e, nil, errShort
	}

	if total < entryHead+2 {
		return e, nil, errLength
	}

	entry, rest := batch[:total], batch[total:]
	e.Flag = int32(be.Uint32(entry[12:]))

	f := fields{in: entry[entryHead-4:]}
	e.Body = f.bytes(int64(int32(f.uint32())))
	props := f.bytes(int64(f.uint16()))

	if f.bad {
		return e, nil, errLength
	}

	e.Props = Properties(props)

	return e, rest, nil
}
