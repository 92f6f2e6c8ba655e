package record

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
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
// The properties of all records share memory too, which is a copy.
func (d *Decoder) Decode(raw []byte, from int64) (records []Record, more bool, err error) {
	more, err = d.Each(raw, from, func(r *Record) bool {
		if records == nil {
			records = make([]Record, 0, Count(raw))
		}

		records = append(records, *r)

		return true
	})

	return records, more, err
}

// Each is Decode for who keeps no records: it calls visit with one after the other until that returns false, which also makes
// for more. The record is valid during the call only; what its fields refer to lasts.
func (d *Decoder) Each(raw []byte, from int64, visit func(*Record) bool) (more bool, err error) {
	b := &decoding{limits: d.limits, from: from, visit: visit}

	for rest := raw; len(rest) > 0; {
		if b.full() {
			return true, nil
		}

		size, err := d.one(b, rest)
		if err != nil {
			return false, &DamagedError{Offset: b.at, At: len(raw) - len(rest), Err: err}
		}

		rest = rest[size:]
	}

	return b.stopped, nil
}

// maxCount bounds what is allocated before anything is known of the records behind the first.
const maxCount = 1024

// Count guesses how many records there are in the answer to a pull, from the size of the first: 1 to 1024.
func Count(raw []byte) int {
	size, _, err := frame(raw)
	if err != nil {
		return 1
	}

	return min((len(raw)-1)/size+1, maxCount)
}

// decoding is the state of one call to Each.
type decoding struct {
	limits  Limits
	from    int64
	visit   func(*Record) bool
	visited int
	record  Record          // the one that is being read or visited
	text    strings.Builder // holds the properties of many records in one allocation
	cost    int
	at      int64 // the offset of the record that is being read, -1 when it is not known
	stopped bool  // in the middle of a batch, or by visit
}

func (b *decoding) full() bool { return b.stopped || b.visited > 0 && b.cost >= b.limits.Total }

// add hands on the record.
func (b *decoding) add() {
	if b.record.Offset < b.from {
		return
	}

	b.visited++
	b.cost += overhead + len(b.record.Props)
	b.stopped = !b.visit(&b.record)
}

// one reads the first record and returns its size.
func (d *Decoder) one(b *decoding, raw []byte) (int, error) {
	b.at = -1

	size, topicSize, err := frame(raw)
	if err != nil {
		return 0, err
	}

	props, sum, err := b.read(raw[8:size], topicSize)
	if err != nil {
		return 0, err
	}

	r := &b.record
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
		return size, b.unwrap()
	}

	r.Props = b.keep(props, size, len(raw)-size)
	b.add()

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

// read reads a record behind its magic, but for its properties, which it returns. Its body and its flags are as they are
// stored.
func (b *decoding) read(raw []byte, topicSize int) (props []byte, sum uint32, err error) {
	f, r := fields{in: raw}, &b.record
	sum = f.uint32()
	r.Queue, r.Flag = int(int32(f.uint32())), int32(f.uint32())
	r.Offset, r.Physical = f.int64(), f.int64()

	if r.Offset < 0 {
		return nil, 0, errOffset
	}

	b.at = r.Offset
	r.SysFlag, r.Born = int32(f.uint32()), f.int64()

	var born, stored bool
	r.BornHost, born = f.host(r.SysFlag&flagBornIPv6 != 0)
	r.Stored = f.int64()
	r.StoreHost, stored = f.host(r.SysFlag&flagStoredIPv6 != 0)
	r.Times, r.Prepared = int(int32(f.uint32())), f.int64()
	r.Body = f.bytes(int64(int32(f.uint32())))

	var size int64
	if topicSize == 1 {
		size = int64(f.uint8())
	} else {
		size = int64(f.uint16())
	}

	if topic := f.bytes(size); r.Topic != string(topic) { // else it keeps the string of the record before
		r.Topic = string(topic)
	}

	props = f.bytes(int64(f.uint16()))

	switch {
	case f.bad:
		return nil, 0, errLength
	case !born || !stored:
		return nil, 0, errHost
	default:
		return props, sum, nil
	}
}

// keep returns properties as a string. Those of many records are parts of one, with room for those of about as many bytes of
// records as are left.
func (b *decoding) keep(props []byte, record, left int) Properties {
	if b.text.Cap()-b.text.Len() < len(props) {
		b.text = strings.Builder{}
		b.text.Grow(min(left/record+1, maxCount) * len(props))
	}

	_, _ = b.text.Write(props)
	text := b.text.String()

	return Properties(text[len(text)-len(props):])
}

// unwrap hands on the messages of an inner batch, of which the record is the first but for what each has of its own.
func (b *decoding) unwrap() error {
	outer := b.record
	outer.SysFlag &^= flagsOfBatch

	for rest := outer.Body; len(rest) > 0; outer.Offset++ {
		if b.full() {
			b.stopped = true

			return nil
		}

		if outer.Offset < 0 { // ran over
			return errOffset
		}

		entry, after, err := CutEntry(rest)
		if err != nil {
			return errors.Join(errors.New("in a message of its inner batch"), err)
		}

		b.record = outer
		b.record.Flag, b.record.Body, b.record.Props, rest = entry.Flag, entry.Body, entry.Props, after
		b.add()
	}

	return nil
}
