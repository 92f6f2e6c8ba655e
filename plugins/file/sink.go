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

	// turn is held by the call that uses the fields below; taking it can be given up, unlike a mutex.
	turn   chan struct{}
	file   handle // nil while the sink is not open
	size   int64  // the end of the last good line
	torn   bool   // behind size there is a rest that could not be cut off yet
	buffer []byte
	stats  Stats
}

// Stats are a sink's counters since it was made.
type Stats struct {
	// Lines and Bytes were written for good.
	Lines, Bytes int64
	// Torn is how many bytes of an unfinished last line Open has cut off.
	Torn int64
}

var (
	_ pipeline.Sink   = (*Sink)(nil)
	_ pipeline.Opener = (*Sink)(nil)
)

// New returns a sink that is not open yet. A nil log logs nothing.
func New(o Options, log *zap.Logger) (*Sink, error) {
	if o.Path == "" {
		return nil, errors.New("file: a path is required")
	}

	if log == nil {
		log = zap.NewNop()
	}

	return &Sink{options: o, log: log, open: openFile, turn: make(chan struct{}, 1)}, nil
}

// Open opens or makes the file and cuts off an unfinished last line, which it logs and counts in [Stats].
// Opening an open sink fails.
func (s *Sink) Open(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()

	if s.file != nil {
		return fmt.Errorf("file: %s is open already", s.options.Path)
	}

	o, err := s.open(s.options.Path)
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}

	if rest := o.size - o.good; rest > 0 {
		if err := o.file.Truncate(o.good); err != nil {
			return errors.Join(fmt.Errorf("file: cutting off an unfinished last line: %w", err), o.file.Close())
		}

		s.stats.Torn += rest
		s.log.Warn("cut off an unfinished last line",
			zap.String("path", s.options.Path), zap.Int64("at", o.good), zap.Int64("bytes", rest))
	}

	s.file, s.size, s.torn = o.file, o.good, false

	return nil
}

// Write appends a line for each message. It fails the messages that are no line with a [*pipeline.BatchError] that
// rejects them ([ErrNotALine]); any other error means that nothing of the batch is in the file.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()

	if s.file == nil {
		return errClosed
	}

	var failures pipeline.BatchError

	lines := s.buffer[:0]

	for i, m := range batch {
		if bytes.IndexByte(m.Body, '\n') >= 0 || !json.Valid(m.Body) {
			failures.Fail(i, pipeline.Reject(ErrNotALine))

			continue
		}

		lines = append(append(lines, m.Body...), '\n')
	}

	if cap(lines) <= keptBuffer {
		s.buffer = lines
	}

	if err := s.append(lines); err != nil {
		return fmt.Errorf("file: %s: %w", s.options.Path, err)
	}

	s.stats.Lines += int64(len(batch) - len(failures.Failed))

	return failures.Err()
}

// append writes all lines or, as far as a reader can see after an error, none.
func (s *Sink) append(lines []byte) error {
	if len(lines) == 0 {
		return nil
	}

	if err := s.mend(); err != nil {
		return err
	}

	if err := s.untouched(); err != nil {
		return err
	}

	_, err := s.file.Write(lines)
	if err == nil && s.options.Fsync == FsyncBatch {
		err = s.file.Sync()
	}

	if err != nil {
		s.torn = true

		return errors.Join(err, s.mend())
	}

	s.size += int64(len(lines))
	s.stats.Bytes += int64(len(lines))

	return nil
}

// mend cuts off what a failed batch has left behind.
func (s *Sink) mend() error {
	if !s.torn {
		return nil
	}

	if err := s.file.Truncate(s.size); err != nil {
		return fmt.Errorf("cutting off an unfinished batch: %w", err)
	}

	s.torn = false

	return nil
}

// untouched checks that the file ends where the sink has left it.
func (s *Sink) untouched() error {
	info, err := s.file.Stat()
	if err != nil {
		return fmt.Errorf("looking up the size: %w", err)
	}

	if now := info.Size(); now != s.size {
		return fmt.Errorf("the file was left with %d bytes and has %d: somebody else writes to it; "+
			"give each sink a file of its own", s.size, now)
	}

	return nil
}

// Stats returns the counters. It waits for a Write that is under way.
func (s *Sink) Stats() Stats {
	s.turn <- struct{}{}
	defer s.give()

	return s.stats
}

// Close makes what was written safe against a power cut and closes the file. Closing twice, or what was never opened,
// does nothing.
func (s *Sink) Close() error {
	s.turn <- struct{}{}
	defer s.give()

	if s.file == nil {
		return nil
	}

	err := errors.Join(s.file.Sync(), s.file.Close())
	s.file = nil

	if err != nil {
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
