package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// handle is what a sink needs of its open file; tests put faults into it.
type handle interface {
	io.WriteCloser
	Stat() (os.FileInfo, error)
	Sync() error
	Truncate(size int64) error
}

var _ handle = (*os.File)(nil)

// opened is a file ready to be appended to.
type opened struct {
	file handle
	// size is the length of the file, good the end of its last complete line.
	size, good int64
	// modified is when it was last written to.
	modified time.Time
}

// openFile opens a file for appending, makes it when it is missing, and looks for the end of its last complete line.
func openFile(path string) (opened, error) {
	folder := filepath.Dir(path)
	if err := makeFolder(folder); err != nil {
		return opened{}, err
	}

	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o644) //nolint:gosec // the umask decides
	if err != nil {
		return opened{}, fmt.Errorf("opening for appending: %w", err)
	}

	o := opened{file: f}

	info, err := f.Stat()
	if err == nil {
		o.size, o.modified = info.Size(), info.ModTime()
		o.good, err = lastLineEnd(f, o.size)
	}

	if err == nil {
		err = syncFolder(folder)
	}

	if err != nil {
		return opened{}, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}

	return o, nil
}

// lastLineEnd returns the offset behind the last line break of a file, 0 when it has none. It reads from the end.
func lastLineEnd(f io.ReaderAt, size int64) (int64, error) {
	chunk := make([]byte, 64<<10)

	for end := size; end > 0; {
		from := max(0, end-int64(len(chunk)))
		part := chunk[:end-from]

		if n, err := f.ReadAt(part, from); n < len(part) {
			return 0, fmt.Errorf("looking for the last line: %w", err)
		}

		if i := bytes.LastIndexByte(part, '\n'); i >= 0 {
			return from + int64(i) + 1, nil
		}

		end = from
	}

	return 0, nil
}

// makeFolder makes a folder with those above it, safe against a power cut like the files in them.
func makeFolder(folder string) error {
	info, err := os.Stat(folder)
	if err == nil && info.IsDir() {
		return nil
	}

	above := filepath.Dir(folder)
	if above != folder {
		if err := makeFolder(above); err != nil {
			return err
		}
	}

	if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) || err != nil && info != nil {
		return fmt.Errorf("making the folder: %w", err)
	}

	return syncFolder(above)
}

// syncFolder makes the entry of a new file safe against a power cut, which syncing the file does not.
func syncFolder(folder string) error {
	if runtime.GOOS == "windows" { // there is no such thing, and no need
		return nil
	}

	f, err := os.Open(folder) //nolint:gosec // the job's author names it
	if err != nil {
		return fmt.Errorf("opening the folder: %w", err)
	}

	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("syncing the folder: %w", err)
	}

	return nil
}
