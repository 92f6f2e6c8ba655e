package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	iofs "io/fs"
	"math/bits"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// When Pebble replays its log after a crash and meets bytes that make no sense, it must tell a write that the crash broke
// off from damage to one that was acknowledged. It looks for later chunks that say how far the log was synced; but what they
// say leaves out the bytes that were written in whole blocks, and damage that makes a chunk look like the end is not looked
// behind at all. So every write of the broker begins with a mark, its own number and the last number that was known to be
// synced, and before Pebble opens its logs they are checked: damage is what stands before a mark that says it was synced. A log
// that another one of the same opening follows was closed, and must end as closed logs do: one that was cut off between two
// writes makes sense up to its end.
//
// Only damage to the last write of the last log, behind which nothing stands, looks like the end of a crash, and so does a last
// log that was cut off.

// A log is made of blocks, a block of chunks that do not cross its end. The head of a chunk is its sum, its length, its
// kind, the number of the log, and how far the log was synced.
const (
	walBlock = 32 << 10
	walHead  = 4 + 2 + 1 + 4 + 8

	walFull  = 9 // a whole record
	walFirst = 10
	walLast  = 12

	walTrailer = 5 // of a shorter head: its sum, its length, its kind and the number of the log
)

// A record is a batch: twelve bytes of head, and then operations, the first of which is the mark.
const (
	batchHead   = 12
	opLogData   = 3
	markLen     = 4 + 8 + 8
	markMagic   = "mill"
	recordStart = batchHead + 2 // the operation's kind, and its length in one byte
	// The numbers of writes have the count of openings above so many bits.
	openingShift = 32
)

// mark returns what a write begins with.
func mark(number, synced uint64) []byte {
	b := append(make([]byte, 0, markLen), markMagic...)
	b = binary.BigEndian.AppendUint64(b, number)

	return binary.BigEndian.AppendUint64(b, synced)
}

// checkLogs looks for damage in the logs of a database that is not open.
func checkLogs(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("%w: %s is not there: bring back a copy of the directory", ErrDamaged, dir)
	}

	if err != nil {
		return fmt.Errorf("embedded: %s cannot be read: %w", dir, err)
	}

	var logs []uint32

	for _, name := range names {
		number, isLog := strings.CutSuffix(name, ".log")
		if n, err := strconv.ParseUint(number, 10, 32); isLog && err == nil {
			logs = append(logs, uint32(n))
		}
	}

	slices.Sort(logs)

	var before walScan

	for _, number := range logs {
		scan, err := checkLog(fs, dir, number)
		if err != nil {
			return err
		}

		if !before.closed && before.opening > 0 && before.opening == scan.first {
			return before.damage("move the logs behind it away to go on without them")
		}

		before = scan
	}

	return nil
}

func checkLog(fs vfs.FS, dir string, number uint32) (walScan, error) {
	scan := walScan{path: fs.PathJoin(dir, fmt.Sprintf("%06d.log", number)), number: number, broken: -1}

	file, err := fs.Open(scan.path, vfs.SequentialReadsOption)
	if err != nil {
		return scan, fmt.Errorf("embedded: %s cannot be read: %w", scan.path, err)
	}

	block := make([]byte, walBlock)

	for err == nil && !scan.damaged {
		var n int

		n, err = io.ReadFull(file, block)
		scan.block(block[:n])
	}

	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}

	if err = errors.Join(err, file.Close()); err != nil {
		return scan, fmt.Errorf("embedded: %s cannot be read: %w", scan.path, err)
	}

	if scan.damaged {
		err = scan.damage("cut the file off there to go on without them")
	}

	return scan, err
}

// walScan is the state of reading one log.
type walScan struct {
	path   string
	number uint32
	// at is where the next block begins.
	at int64
	// broken is the first byte that makes no sense; -1 before.
	broken int64
	// next is the least number that the write at broken can have; 0 when that is not known.
	next uint64
	// first and opening are the openings of the first and the last write before what is broken; 0 when that is not known.
	first, opening uint32
	// closed is set when the log ends as it does when Pebble goes on with another one.
	closed bool
	// damaged is set when what is broken was synced.
	damaged bool
}

// damage says where the log stops making sense, or ends, and what else can be done about it.
func (s *walScan) damage(cure string) error {
	at := s.broken
	if at < 0 {
		at = s.at
	}

	return fmt.Errorf("%w: the log %s at byte %d, before writes that were acknowledged: bring back a copy of the directory, "+
		"or %s", ErrDamaged, filepath.Clean(s.path), at, cure)
}

// block reads the next block.
func (s *walScan) block(b []byte) {
	from := 0

	for len(b)-from >= walHead && !s.damaged {
		kind, synced, payload := s.chunk(b[from:])

		switch {
		case payload == nil:
			s.end(b, from)

			from++ // a chunk may begin anywhere behind

			continue
		case s.broken < 0:
			s.follow(kind, payload)
		default:
			_, before, marked := readMark(kind, payload)
			s.damaged = synced > uint64(s.broken) || marked && s.next > 0 && before >= s.next
		}

		from += walHead + len(payload)
	}

	if len(b) < walBlock && from < len(b) {
		s.end(b, from)
	}

	s.at += int64(len(b))
}

// end notes where the log stops making sense first. A closed log has the head of an empty chunk of the next log there.
func (s *walScan) end(b []byte, from int) {
	if s.broken >= 0 {
		return
	}

	s.broken = s.at + int64(from)

	trailer := binary.LittleEndian.AppendUint32([]byte{0, 0, 0, 0, 0, 0, walTrailer}, s.number+1)
	s.closed = bytes.HasPrefix(b[from:], trailer)
}

// walSum is the sum of a chunk: a CRC-32C, rotated, with a number added.
func walSum(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)

	return bits.RotateLeft32(sum, -15) + 0xa282ead8
}

// chunk returns the chunk that b begins with; payload is nil when it begins with none.
func (s *walScan) chunk(b []byte) (kind byte, synced uint64, payload []byte) {
	kind = b[6]
	end := walHead + int(binary.LittleEndian.Uint16(b[4:]))

	if kind < walFull || kind > walLast || binary.LittleEndian.Uint32(b[7:]) != s.number || end > len(b) ||
		binary.LittleEndian.Uint32(b) != walSum(b[6:end]) {
		return 0, 0, nil
	}

	return kind, binary.LittleEndian.Uint64(b[11:]), b[walHead:end]
}

// follow keeps count of the writes before anything is broken.
func (s *walScan) follow(kind byte, payload []byte) {
	if number, _, marked := readMark(kind, payload); marked {
		s.next = number
		s.opening = uint32(number >> openingShift)

		if s.first == 0 {
			s.first = s.opening
		}
	}

	if kind == walFull || kind == walLast {
		s.next++
	}
}

// readMark returns the mark of the write that begins in a chunk.
func readMark(kind byte, payload []byte) (number, synced uint64, marked bool) {
	if kind != walFull && kind != walFirst || len(payload) < recordStart+markLen || payload[batchHead] != opLogData ||
		payload[batchHead+1] != markLen || string(payload[recordStart:recordStart+4]) != markMagic {
		return 0, 0, false
	}

	payload = payload[recordStart+4:]

	return binary.BigEndian.Uint64(payload), binary.BigEndian.Uint64(payload[8:]), true
}
