package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// lines is one open file of lines. The turn of its sink guards it.
type lines struct {
	path string
	file handle
	size int64     // the end of the last good line
	torn bool      // behind size there is a rest that could not be cut off yet
	last time.Time // when it was last written to
}

// openLines opens a file, cuts off an unfinished last line, and has packed what a former run has put aside.
func (s *Sink) openLines(path string) (*lines, error) {
	o, err := s.open(path)
	if err != nil {
		return nil, err
	}

	if rest := o.size - o.good; rest > 0 {
		if err := o.file.Truncate(o.good); err != nil {
			return nil, errors.Join(fmt.Errorf("cutting off an unfinished last line: %w", err), o.file.Close())
		}

		s.stats.Torn += rest
		s.log.Warn("cut off an unfinished last line",
			zap.String("path", path), zap.Int64("at", o.good), zap.Int64("bytes", rest))
	}

	if s.options.Compress != CompressNone {
		left, err := unpacked(path)
		if err != nil {
			return nil, errors.Join(err, o.file.Close())
		}

		s.packer.add(left...)
	}

	return &lines{path: path, file: o.file, size: o.good, last: o.modified}, nil
}

// append writes all of a text or, as far as a reader can see after an error, none.
func (l *lines) append(text []byte, fsync Fsync) error {
	if err := l.mend(); err != nil {
		return err
	}

	if err := l.untouched(); err != nil {
		return err
	}

	_, err := l.file.Write(text)
	if err == nil && fsync == FsyncBatch {
		err = l.file.Sync()
	}

	if err != nil {
		l.torn = true

		return errors.Join(err, l.mend())
	}

	l.size += int64(len(text))
	l.last = time.Now()

	return nil
}

// mend cuts off what a failed batch has left behind.
func (l *lines) mend() error {
	if !l.torn {
		return nil
	}

	if err := l.file.Truncate(l.size); err != nil {
		return fmt.Errorf("cutting off an unfinished batch: %w", err)
	}

	l.torn = false

	return nil
}

// untouched checks that the file ends where the sink has left it.
func (l *lines) untouched() error {
	info, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("looking up the size: %w", err)
	}

	if now := info.Size(); now != l.size {
		return fmt.Errorf("the file was left with %d bytes and has %d: somebody else writes to it; "+
			"give each sink a file of its own", l.size, now)
	}

	return nil
}

// close makes what was written safe against a power cut and closes the file.
func (l *lines) close() error {
	return errors.Join(l.mend(), l.file.Sync(), l.file.Close())
}

// putAside gives a file that was closed another name, and returns that.
func (l *lines) putAside() (string, error) {
	name, err := freeName(l.path, time.Now())
	if err != nil {
		return "", err
	}

	if err := os.Rename(l.path, name); err != nil {
		return "", fmt.Errorf("putting the file aside: %w", err)
	}

	return name, syncFolder(filepath.Dir(l.path))
}
