// Package file is the sink that appends messages to a file of JSON lines.
//
// A line is the body of a message, unchanged; so a body must be one line of valid JSON, and a message whose body is not
// is rejected. Lines are never torn: what a crash has left of a line is cut off when the file is opened again, and a
// batch that could not be written completely is cut off at once, so that writing it again duplicates nothing.
package file

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// ErrNotALine is why a message is rejected whose body is not valid JSON or has a line break in it.
var ErrNotALine = errors.New("file: the body is not one line of JSON")

// errClosed is what Write fails with before Open and after Close.
var errClosed = errors.New("file: the sink is not open")

// keptBuffer is the largest write buffer that is kept for the next batch, in bytes; a guess.
const keptBuffer = 4 << 20

// Sink appends messages to one file, a line each. It is safe for concurrent use. While it is open nobody else may write
// to the file: it checks the size before every batch and fails the batch when it is not as the sink has left it.
type Sink struct {
	options Options
	log     *zap.Logger
	open    func(path string) (opened, error)
	packer  *packer

	// turn is held by the call that uses the fields below; taking it can be given up, unlike a mutex.
	turn   chan struct{}
	ready  bool   // between Open and Close
	lines  *lines // nil when the file has to be opened first
	buffer []byte
	stats  Stats
}

// Stats are a sink's counters since it was made.
type Stats struct {
	// Lines and Bytes were written for good.
	Lines, Bytes int64
	// Torn is how many bytes of an unfinished last line Open has cut off.
	Torn int64
	// Rotated is how many files were put aside, Compressed how many were packed.
	Rotated, Compressed int64
}

var (
	_ pipeline.Sink   = (*Sink)(nil)
	_ pipeline.Opener = (*Sink)(nil)
	_ pipeline.Meter  = (*Sink)(nil)
)

// New returns a sink that is not open yet. A nil log logs nothing.
func New(o Options, log *zap.Logger) (*Sink, error) {
	if o.Path == "" {
		return nil, errors.New("file: a path is required")
	}

	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("file: %w", err)
	}

	if log == nil {
		log = zap.NewNop()
	}

	return &Sink{
		options: o, log: log, open: openFile, packer: &packer{how: o.Compress, log: log}, turn: make(chan struct{}, 1),
	}, nil
}

// Open opens or makes the file and cuts off an unfinished last line, which it logs and counts in [Stats].
// Opening an open sink fails.
func (s *Sink) Open(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()

	if s.ready {
		return fmt.Errorf("file: %s is open already", s.options.Path)
	}

	l, err := s.openLines(s.options.Path)
	if err != nil {
		return err
	}

	s.lines, s.ready = l, true

	return nil
}

// Write appends a line for each message. It fails the messages that are no line with a [*pipeline.BatchError] that
// rejects them ([ErrNotALine]); any other error means that nothing of the batch is in the file.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()

	if !s.ready {
		return errClosed
	}

	var failures pipeline.BatchError

	text := s.buffer[:0]

	for i, m := range batch {
		if bytes.IndexByte(m.Body, '\n') >= 0 || !json.Valid(m.Body) {
			failures.Fail(i, pipeline.Reject(ErrNotALine))

			continue
		}

		text = append(append(text, m.Body...), '\n')
	}

	if cap(text) <= keptBuffer {
		s.buffer = text
	}

	if err := s.append(text); err != nil {
		return fmt.Errorf("file: %s: %w", s.options.Path, err)
	}

	s.stats.Lines += int64(len(batch) - len(failures.Failed))

	return failures.Err()
}

// append writes a text into the file, or into a new one when it is time for that.
func (s *Sink) append(text []byte) error {
	if len(text) == 0 {
		return nil
	}

	if err := s.reopen(); err != nil {
		return err
	}

	if s.options.Rotate.due(s.lines, int64(len(text)), time.Now()) {
		if err := errors.Join(s.rotate(), s.reopen()); err != nil {
			return err
		}
	}

	if err := s.lines.append(text, s.options.Fsync); err != nil {
		return err
	}

	s.stats.Bytes += int64(len(text))

	return nil
}

// reopen opens the file unless it is open.
func (s *Sink) reopen() error {
	if s.lines != nil {
		return nil
	}

	l, err := s.openLines(s.options.Path)
	if err == nil {
		s.lines = l
	}

	return err
}

// rotate puts the file aside. When it fails the file is as it was, and the next batch tries it again.
func (s *Sink) rotate() error {
	if err := errors.Join(s.lines.mend(), s.lines.untouched()); err != nil {
		return err
	}

	l := s.lines
	s.lines = nil

	if err := l.close(); err != nil {
		return err
	}

	name, err := l.putAside()
	if err != nil {
		return err
	}

	s.stats.Rotated++

	if s.options.Compress != CompressNone {
		s.packer.add(name)
	}

	return nil
}

// Stats returns the counters. It waits for a Write that is under way.
func (s *Sink) Stats() Stats {
	s.turn <- struct{}{}
	defer s.give()

	stats := s.stats
	stats.Compressed = s.packer.count()

	return stats
}

// Meter returns the counters as [Sink.Stats] does.
func (s *Sink) Meter() map[string]int64 {
	stats := s.Stats()

	return map[string]int64{
		"lines": stats.Lines, "bytes": stats.Bytes, "torn": stats.Torn, "rotated": stats.Rotated, "compressed": stats.Compressed,
	}
}

// Close makes what was written safe against a power cut, closes the file, and waits for the packing of others. Closing twice,
// or what was never opened, does nothing.
func (s *Sink) Close() error {
	s.turn <- struct{}{}
	defer s.give()

	s.packer.wait()

	l := s.lines
	s.lines, s.ready = nil, false

	if l == nil {
		return nil
	}

	if err := l.close(); err != nil {
		return fmt.Errorf("file: %s: %w", s.options.Path, err)
	}

	return nil
}

func (s *Sink) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("file: waiting for the turn to write: %w", ctx.Err())
	}
}

func (s *Sink) give() { <-s.turn }
