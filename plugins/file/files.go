package file

import (
	"container/list"
	"errors"
	"time"

	"go.uber.org/zap"
)

// files are the files of a sink that are open, no more than so many; the one not used for longest is closed for another one.
// The turn of the sink guards them.
type files struct {
	most   int
	byPath map[string]*list.Element
	used   list.List // of *lines, the one used last in front
}

// find returns an open file, nil when it is not open.
func (f *files) find(path string) *lines {
	element, ok := f.byPath[path]
	if !ok {
		return nil
	}

	f.used.MoveToFront(element)

	l, _ := element.Value.(*lines)

	return l
}

// add takes in a file that was opened.
func (f *files) add(l *lines) {
	if f.byPath == nil {
		f.byPath = make(map[string]*list.Element)
	}

	f.byPath[l.path] = f.used.PushFront(l)
}

// remove forgets a file, which the caller closes.
func (f *files) remove(l *lines) {
	if element, ok := f.byPath[l.path]; ok {
		f.used.Remove(element)
		delete(f.byPath, l.path)
	}
}

// oldest returns the file to close before another one is opened; nil while there is room.
func (f *files) oldest() *lines {
	if len(f.byPath) < f.most {
		return nil
	}

	l, _ := f.used.Back().Value.(*lines)

	return l
}

// all returns all files.
func (f *files) all() []*lines {
	all := make([]*lines, 0, len(f.byPath))

	for element := f.used.Front(); element != nil; element = element.Next() {
		l, _ := element.Value.(*lines)
		all = append(all, l)
	}

	return all
}

// use returns a file that is open, and opens it for that.
func (s *Sink) use(path string) (*lines, error) {
	if l := s.files.find(path); l != nil {
		return l, nil
	}

	if l := s.files.oldest(); l != nil {
		s.files.remove(l)

		if err := l.close(); err != nil { // what was promised is kept: it is synced, or need not be
			s.log.Warn("a file could not be closed in order", zap.String("path", l.path), zap.Error(err))
		}
	}

	l, err := s.openLines(path)
	if err != nil {
		return nil, err
	}

	s.stats.Opened++
	s.files.add(l)

	return l, nil
}

// append writes a text into a file, or into a new one when it is time for that.
func (s *Sink) append(path string, text []byte) error {
	l, err := s.use(path)
	if err != nil {
		return err
	}

	if s.options.Rotate.due(l, int64(len(text)), time.Now()) {
		if err := s.rotate(l); err != nil {
			return err
		}

		if l, err = s.use(path); err != nil {
			return err
		}
	}

	if err := l.append(text, s.options.Fsync); err != nil {
		return err
	}

	s.stats.Bytes += int64(len(text))

	return nil
}

// rotate puts a file aside. When it fails the file is as it was, and the next batch tries it again.
func (s *Sink) rotate(l *lines) error {
	if err := errors.Join(l.mend(), l.untouched()); err != nil {
		return err
	}

	s.files.remove(l)

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
