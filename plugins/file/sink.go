// Package file is the sink that appends messages to files of lines: JSON, or any text.
//
// A line is the body of a message, unchanged; so a body must be one line, of valid JSON unless text is asked for, and a
// message whose body is not is rejected. Lines are never torn: what a crash has left of a line is cut off when the file is
// opened again, and a batch that could not be written completely is cut off at once, so that writing it again duplicates
// nothing.
package file

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// errClosed is what Write fails with before Open and after Close.
var errClosed = errors.New("file: the sink is not open")

// keptBuffer is the largest write buffer that is kept for the next batch, in bytes; a guess.
const keptBuffer = 4 << 20

// Sink appends messages to files, a line each. It is safe for concurrent use. While it is open nobody else may write to its
// files: it checks the size before every batch and fails the batch when it is not as the sink has left it.
type Sink struct {
	options Options
	namer   *namer
	log     *zap.Logger
	open    func(path string) (opened, error)
	packer  *packer

	// turn is held by the call that uses the fields below; taking it can be given up, unlike a mutex.
	turn   chan struct{}
	ready  bool // between Open and Close
	files  files
	buffer []byte
	stats  Stats

	// shown are the counters as of the end of the last such call.
	shown atomic.Pointer[Stats]
}

// Stats are a sink's counters since it was made.
type Stats struct {
	// Lines and Bytes were written for good.
	Lines, Bytes int64
	// Torn is how many bytes of unfinished last lines were cut off.
	Torn int64
	// Opened is how often a file was opened.
	Opened int64
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

	if o.MaxOpen == 0 {
		o.MaxOpen = 64
	}

	namer, err := newNamer(o)
	if err != nil {
		return nil, fmt.Errorf("file: path: %w", err)
	}

	return &Sink{
		options: o, namer: namer, log: log, open: openFile, packer: &packer{how: o.Compress, log: log},
		turn: make(chan struct{}, 1), files: files{most: o.MaxOpen},
	}, nil
}

// Open opens or makes the file and cuts off an unfinished last line, which it logs and counts in [Stats]. Where messages name
// their files it makes the folder that they are in. Opening an open sink fails.
func (s *Sink) Open(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()

	if s.ready {
		return fmt.Errorf("file: %s is open already", s.options.Path)
	}

	if path, ok := s.namer.fixed(); ok {
		if _, err := s.use(path); err != nil {
			return fmt.Errorf("file: %w", err)
		}
	} else if err := makeFolder(filepath.Clean(s.namer.folder)); err != nil {
		return fmt.Errorf("file: %w", err)
	}

	s.ready = true

	return nil
}

// Write appends a line for each message. Messages fail alone, in a [*pipeline.BatchError]: those that are no line
// ([ErrNotALine]) or make no name of a file ([ErrName]) are rejected; of those whose file could not be written, nothing is in it.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()

	if !s.ready {
		return errClosed
	}

	var failures pipeline.BatchError

	for _, g := range s.groups(batch, &failures) {
		if err := ctx.Err(); err != nil { // many files take their time
			g.fail(&failures, err)

			continue
		}

		text := s.buffer[:0]
		for _, i := range g.indexes {
			text = append(append(text, batch[i].Body...), '\n')
		}

		if cap(text) <= keptBuffer {
			s.buffer = text
		}

		if err := s.append(g.path, text); err != nil {
			g.fail(&failures, err)

			continue
		}

		s.stats.Lines += int64(len(g.indexes))
	}

	return failures.Err()
}

// group are messages of a batch that go into one file.
type group struct {
	path    string
	indexes []int
}

func (g *group) fail(failures *pipeline.BatchError, err error) {
	for _, i := range g.indexes {
		failures.Fail(i, fmt.Errorf("file: %s: %w", g.path, err))
	}
}

// groups divides a batch by files, and fails what goes into none.
func (s *Sink) groups(batch []*pipeline.Message, failures *pipeline.BatchError) []*group {
	var all []*group

	byPath := make(map[string]*group, 1)

	for i, m := range batch {
		if err := s.options.Format.check(m.Body); err != nil {
			failures.Fail(i, pipeline.Reject(err))

			continue
		}

		path, err := s.namer.of(m)
		if err != nil {
			failures.Fail(i, pipeline.Reject(err))

			continue
		}

		g, ok := byPath[path]
		if !ok {
			g = &group{path: path}
			byPath[path] = g
			all = append(all, g)
		}

		g.indexes = append(g.indexes, i)
	}

	return all
}

// Stats returns the counters as of the end of the last Write, Open or Close.
func (s *Sink) Stats() Stats {
	var stats Stats
	if shown := s.shown.Load(); shown != nil {
		stats = *shown
	}

	stats.Compressed = s.packer.count()

	return stats
}

// Meter returns the counters as [Sink.Stats] does.
func (s *Sink) Meter() map[string]int64 {
	stats := s.Stats()

	return map[string]int64{
		"lines": stats.Lines, "bytes": stats.Bytes, "torn": stats.Torn, "rotated": stats.Rotated, "compressed": stats.Compressed,
		"opened": stats.Opened,
	}
}

// Close makes what was written safe against a power cut, closes the files, and waits for the packing of others. Closing twice,
// or what was never opened, does nothing.
func (s *Sink) Close() error {
	s.turn <- struct{}{}
	defer s.give()

	s.packer.wait()

	var errs []error

	for _, l := range s.files.all() {
		s.files.remove(l)

		if err := l.close(); err != nil {
			errs = append(errs, fmt.Errorf("file: %s: %w", l.path, err))
		}
	}

	s.ready = false

	return errors.Join(errs...)
}

func (s *Sink) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("file: waiting for the turn to write: %w", ctx.Err())
	}
}

func (s *Sink) give() {
	stats := s.stats
	s.shown.Store(&stats)

	<-s.turn
}
