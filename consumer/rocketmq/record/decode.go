package record

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
)

// The defaults of Limits.
const (
	DefaultMaxBody  = 16 << 20
	DefaultMaxTotal = 64 << 20
)

// overhead is what a record costs beside its body and properties; about the size of a Record.
const overhead = 256

// Limits bound what a Decoder makes of its input.
type Limits struct {
	// Body is the most bytes of one body when it is not compressed any more, and of one inner batch; 0 means 16 MiB.
	// Brokers take 4 MiB by default.
	Body int
	// Total is the most that one call to Decode takes in memory, give or take one body; 0 means 64 MiB.
	Total int
	// NoChecksums leaves the checksums of the bodies alone. By default they are checked.
	NoChecksums bool
}

// Decoder reads records. It is safe for concurrent use.
type Decoder struct {
	limits    Limits
	inflaters sync.Pool // of *inflater
}

// NewDecoder returns a decoder with the given limits.
func NewDecoder(l Limits) (*Decoder, error) {
	l.Body, l.Total = cmp.Or(l.Body, DefaultMaxBody), cmp.Or(l.Total, DefaultMaxTotal)

	if l.Body < 0 || l.Body > math.MaxInt32 || l.Total < 0 {
		return nil, fmt.Errorf("record: Limits of %d bytes a body and %d in total: a body has 1 B to 2 GiB, a total 1 B or more",
			l.Body, l.Total)
	}

	return &Decoder{limits: l, inflaters: sync.Pool{New: func() any { return &inflater{} }}}, nil
}

// Decode returns the records of an answer to a pull, in their order, without those whose offset is below from. Compressed
// bodies are inflated and inner batches taken apart.
//
// It stops early, with more, when Limits.Total is used up: then at least one record is returned, and the rest comes with
// another pull, from the offset after the last one's.
//
// The error is a [*DamagedError]. The records before the damage are returned with it and are as good as any.
//
// Bodies that were not compressed are parts of raw, so it must not be changed any more, and lives as long as one of them.
func (d *Decoder) Decode(raw []byte, from int64) (records []Record, more bool, err error) {
	b := &decoding{limits: d.limits, from: from}

	for rest := raw; len(rest) > 0; {
		if b.full() {
			return b.records, true, nil
		}

		size, err := d.one(b, rest)
		if err != nil {
			return b.records, false, &DamagedError{Offset: b.at, At: len(raw) - len(rest), Err: err}
		}

		rest = rest[size:]
	}

	return b.records, b.stopped, nil
}

// decoding is the state of one call to Decode.
type decoding struct {
	limits  Limits
	from    int64
	records []Record
	cost    int
	at      int64 // the offset of the record that is being read, -1 when it is not known
	stopped bool  // in the middle of a batch
}

func (b *decoding) full() bool { return b.stopped || len(b.records) > 0 && b.cost >= b.limits.Total }

func (b *decoding) add(r Record) {
	if r.Offset < b.from {
		return
	}

	b.records = append(b.records, r)
	b.cost += overhead + len(r.Props)
}

// one reads the first record and returns its size.
func (d *Decoder) one(b *decoding, raw []byte) (int, error) {
	b.at = -1

	size, topicSize, err := frame(raw)
	if err != nil {
		return 0, err
	}

	r, sum, err := b.read(raw[8:size], topicSize)
	if err != nil {
		return 0, err
	}

	if r.Offset < b.from && r.SysFlag&flagsOfBatch != flagsOfBatch {
		return size, nil // spares the inflating
	}

	// Zero is what brokers write that do not compute it.
	if !d.limits.NoChecksums && sum != 0 && sum != checksum(r.Body) {
		return 0, errChecksum
	}

	if r.SysFlag&flagCompressed != 0 {
		if r.Body, err = d.inflate(r.Body, r.SysFlag&kindMask>>kindShift); err != nil {
			return 0, err
		}

		r.SysFlag &^= flagCompressed | kindMask
		b.cost += cap(r.Body)
	}

	if r.SysFlag&flagsOfBatch == flagsOfBatch {
		return size, b.unwrap(r)
	}

	b.add(r)

	return size, nil
}

// frame returns how long the first record is and how many bytes its topic's length has.
func frame(raw []byte) (size, topicSize int, err error) {
	if len(raw) < 8 {
		return 0, 0, errShort
	}

	total := binary.BigEndian.Uint32(raw)
	if uint64(total) > uint64(len(raw)) {
		return 0, 0, errShort
	}

	if total < fixedSize {
		return 0, 0, errLength
	}

	switch binary.BigEndian.Uint32(raw[4:]) {
	case magicV1:
		return int(total), 1, nil
	case magicV2:
		return int(total), 2, nil
	default:
		return 0, 0, errMagic
	}
}

// read reads a record behind its magic. Its body and its flags are as they are stored.
func (b *decoding) read(raw []byte, topicSize int) (r Record, sum uint32, err error) {
	f := fields{in: raw}
	sum = f.uint32()
	r.Queue, r.Flag = int(int32(f.uint32())), int32(f.uint32())
	r.Offset, r.Physical = f.int64(), f.int64()

	if r.Offset < 0 {
		return r, 0, errOffset
	}

	b.at = r.Offset
	r.SysFlag, r.Born = int32(f.uint32()), f.int64()

	var born, stored bool
	r.BornHost, born = f.host(r.SysFlag&flagBornIPv6 != 0)
	r.Stored = f.int64()
	r.StoreHost, stored = f.host(r.SysFlag&flagStoredIPv6 != 0)
	r.Times, r.Prepared = int(int32(f.uint32())), f.int64()
	r.Body = f.bytes(int64(int32(f.uint32())))

	if topicSize == 1 {
		r.Topic = b.topic(f.bytes(int64(f.uint8())))
	} else {
		r.Topic = b.topic(f.bytes(int64(f.uint16())))
	}

	r.Props = Properties(f.bytes(int64(f.uint16())))

	switch {
	case f.bad:
		return r, 0, errLength
	case !born || !stored:
		return r, 0, errHost
	default:
		return r, sum, nil
	}
}

// topic returns a topic's name, without a copy of its own where it is that of the record before.
func (b *decoding) topic(raw []byte) string {
	if n := len(b.records); n > 0 && b.records[n-1].Topic == string(raw) {
		return b.records[n-1].Topic
	}

	return string(raw)
}

// unwrap adds the messages of an inner batch, of which outer is the first but for what each has of its own.
func (b *decoding) unwrap(outer Record) error {
	outer.SysFlag &^= flagsOfBatch

	for rest := outer.Body; len(rest) > 0; outer.Offset++ {
		if b.stopped = b.full(); b.stopped {
			return nil
		}

		if outer.Offset < 0 { // ran over
			return errOffset
		}

		entry, after, err := CutEntry(rest)
		if err != nil {
			return errors.Join(errors.New("in a message of its inner batch"), err)
		}

		outer.Flag, outer.Body, outer.Props, rest = entry.Flag, entry.Body, entry.Props, after
		b.add(outer)
	}

	return nil
}
