package enrich

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// Source is a file with the table in it that all lanes of a stage share. It is safe for concurrent use.
type Source struct {
	options Options
	log     *zap.Logger

	table atomic.Pointer[table]
	// due is when the file is to be looked at, by a clock that begins with begun; whoever moves it on does so.
	begun time.Time
	due   atomic.Int64
	busy  atomic.Bool // held by who looks at the file, for the field below
	seen  stamp
}

// stamp tells one state of a file from another. The zero value is that of no file.
type stamp struct {
	modified time.Time
	size     int64
}

// New reads the table. A nil log logs nothing.
func New(o Options, log *zap.Logger) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("enrich: %w", err)
	}

	if log == nil {
		log = zap.NewNop()
	}

	s := &Source{options: o.withDefaults(), log: log, begun: time.Now()}

	seen, err := s.look()
	if err == nil {
		err = s.load(seen)
	}

	if err != nil {
		return nil, fmt.Errorf("enrich: %s: %w", o.Table, err)
	}

	s.due.Store(int64(s.options.Reload))

	return s, nil
}

// Lanes returns the Lane of a new [Source].
func Lanes(o Options, log *zap.Logger) (func() (pipeline.Transform, error), error) {
	s, err := New(o, log)
	if err != nil {
		return nil, err
	}

	return s.Lane, nil
}

// Lane returns a transform that shares the table with all others that it returns. It never fails; its type is that of a
// [pipeline.Stage].New.
func (s *Source) Lane() (pipeline.Transform, error) { return &Transform{source: s}, nil }

// look returns the state of the file.
func (s *Source) look() (stamp, error) {
	info, err := os.Stat(s.options.Table)
	if err != nil {
		return stamp{}, withoutPath(err)
	}

	if !info.Mode().IsRegular() {
		return stamp{}, errors.New("is no file")
	}

	return stamp{info.ModTime(), info.Size()}, nil
}

// errChanging is why a file is not used that somebody is writing.
var errChanging = errors.New("it has changed while it was read")

// load reads the table of a state of the file.
func (s *Source) load(seen stamp) error {
	s.seen = seen // also of a bad one, which is bad until it changes

	f, err := os.Open(s.options.Table)
	if err != nil {
		return withoutPath(err)
	}
	defer func() { _ = f.Close() }()

	limit := int64(s.options.MaxSize)

	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return withoutPath(err)
	}

	if int64(len(text)) > limit {
		return fmt.Errorf("has more than %d bytes; max_size allows more", limit)
	}

	t, err := parse(text, s.options)

	if now, lookErr := s.look(); lookErr != nil || now != seen {
		s.seen = stamp{}

		return errors.Join(errChanging, lookErr)
	}

	if err != nil {
		return err
	}

	s.table.Store(t)

	return nil
}

// refresh reads the table again when its time has come and the file has changed. While one lane does, the others go on with the
// old one.
func (s *Source) refresh() (reloaded bool, err error) {
	now := time.Since(s.begun)
	if int64(now) < s.due.Load() || !s.busy.CompareAndSwap(false, true) {
		return false, nil
	}

	defer s.busy.Store(false)
	defer func() { s.due.Store(int64(time.Since(s.begun)) + int64(s.options.Reload)) }()

	seen, err := s.look()

	switch {
	case seen == s.seen:
		return false, nil
	case err != nil:
		s.seen = seen
	default:
		err = s.load(seen)
	}

	if err != nil {
		s.log.Warn("the table cannot be read again; the old one stays", zap.String("table", s.options.Table), zap.Error(err))

		return false, err
	}

	s.log.Info("read the table again", zap.String("table", s.options.Table), zap.Int("rows", len(s.table.Load().rows)))

	return true, nil
}

// withoutPath takes off what errors of files say of themselves: the caller names the file.
func withoutPath(err error) error {
	if e, ok := errors.AsType[*os.PathError](err); ok {
		return e.Err
	}

	return err
}
