package embedded

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// What is in a broker's directory.
const (
	fileFormat = "FORMAT"     // says that this is a broker, in which format, and which one
	fileMaking = "FORMAT.tmp" // the same while the broker is being made: nothing has been acknowledged yet
	fileLock   = "LOCK"       // is locked by the process that has the broker open
	dirPebble  = "pebble"     // is the database
)

const (
	formatVersion = 1
	formatText    = "millrace embedded broker\nformat %d\nstore %s\n"
	maxFormatFile = 4 << 10
)

// directory is a locked broker directory.
type directory struct {
	fs   vfs.FS
	path string
	// store names this store among all: it is in the ids of messages.
	store string
	// fresh says that the directory is being made, until settle.
	fresh bool
	lock  io.Closer
}

// openDirectory makes the directory if need be, locks it and reads its format. A directory that is something else is left
// as it is.
func openDirectory(fs vfs.FS, path string) (*directory, error) {
	path, err := madeDirectory(fs, path)
	if err != nil {
		return nil, err
	}

	if err := checkForeign(fs, path); err != nil {
		return nil, err
	}

	d := &directory{fs: fs, path: path}

	d.lock, err = fs.Lock(fs.PathJoin(path, fileLock))
	if pathErr := (*iofs.PathError)(nil); errors.As(err, &pathErr) {
		return nil, fmt.Errorf("embedded: %s cannot be written: %w; the broker needs a directory to write to", path, err)
	}

	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w; close that one first, or use another directory", ErrInUse, path, err)
	}

	if err := d.readFormat(); err != nil {
		return nil, errors.Join(err, d.close())
	}

	return d, nil
}

// madeDirectory returns the one name of a directory under which it is locked, after making it if it is missing.
func madeDirectory(fs vfs.FS, path string) (string, error) {
	if err := makeDurably(fs, path); err != nil {
		return path, fmt.Errorf("embedded: %s cannot be the broker's directory: %w", path, err)
	}

	if fs != vfs.Default {
		return path, nil
	}

	absolute, err := filepath.Abs(path)
	if err == nil {
		absolute, err = filepath.EvalSymlinks(absolute)
	}

	if err != nil {
		return path, fmt.Errorf("embedded: %s cannot be the broker's directory: %w", path, err)
	}

	return absolute, nil
}

// makeDurably makes a directory and those above it that are missing, so that they are there after a power cut, too.
func makeDurably(fs vfs.FS, path string) error {
	if _, err := fs.Stat(path); !errors.Is(err, iofs.ErrNotExist) {
		return wrap("looking for it", err)
	}

	parent := fs.PathDir(path)
	if parent != path {
		if err := makeDurably(fs, parent); err != nil {
			return err
		}
	}

	if err := fs.MkdirAll(path, 0o755); err != nil {
		return wrap("making it", err)
	}

	return syncDirectory(fs, parent)
}

func syncDirectory(fs vfs.FS, path string) error {
	dir, err := fs.OpenDir(path)
	if err != nil {
		return wrap("opening "+path, err)
	}

	return errors.Join(dir.Sync(), dir.Close())
}

// wrap says what failed; nil stays nil.
func wrap(what string, err error) error {
	if err == nil {
		return nil
	}

	return fmt.Errorf("%s: %w", what, err)
}

// checkForeign refuses a directory that has files, and not those of a broker.
func checkForeign(fs vfs.FS, path string) error {
	files, err := fs.List(path)
	if err != nil {
		return fmt.Errorf("embedded: %s cannot be read: %w", path, err)
	}

	if slices.Contains(files, fileFormat) {
		return nil
	}

	making := slices.Contains(files, fileMaking)
	files = slices.DeleteFunc(files, func(name string) bool {
		return name == fileLock || making && (name == fileMaking || name == dirPebble)
	})

	if len(files) == 0 {
		return nil
	}

	slices.Sort(files)

	const shown = 5

	return fmt.Errorf("%w: %s has %d files and no %s, among them %s: use an empty directory",
		ErrForeign, path, len(files), fileFormat, strings.Join(files[:min(shown, len(files))], ", "))
}

func (d *directory) readFormat() error {
	text, err := d.read(fileFormat)
	if errors.Is(err, iofs.ErrNotExist) {
		d.fresh = true
		text, err = d.begin()
	}

	if err != nil {
		return fmt.Errorf("embedded: %s: %w", d.path, err)
	}

	var format int

	if n, err := fmt.Sscanf(text, formatText, &format, &d.store); n < 1 {
		return fmt.Errorf("%w: %s: its file %s is not understood: %w", ErrForeign, d.path, fileFormat, err)
	}

	switch {
	case format > formatVersion:
		return fmt.Errorf("%w: %s has format %d, this program knows up to %d: use a newer program",
			ErrNewer, d.path, format, formatVersion)
	case format < 1 || d.store == "":
		return fmt.Errorf("%w: %s: its file %s is cut short: bring back a copy of it", ErrDamaged, d.path, fileFormat)
	}

	return nil
}

func (d *directory) read(name string) (string, error) {
	file, err := d.fs.Open(d.fs.PathJoin(d.path, name))
	if err != nil {
		return "", fmt.Errorf("opening %s: %w", name, err)
	}

	text, err := io.ReadAll(io.LimitReader(file, maxFormatFile))

	return string(text), errors.Join(err, file.Close())
}

// begin writes down that a broker is being made here.
func (d *directory) begin() (string, error) {
	var id [4]byte

	_, _ = rand.Read(id[:]) // never fails
	text := fmt.Sprintf(formatText, formatVersion, hex.EncodeToString(id[:]))

	file, err := d.fs.Create(d.fs.PathJoin(d.path, fileMaking), vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", fmt.Errorf("making %s: %w", fileMaking, err)
	}

	_, err = io.WriteString(file, text)

	return text, errors.Join(err, file.Sync(), file.Close())
}

// settle makes a new directory a broker's for good.
func (d *directory) settle() error {
	if err := d.fs.Rename(d.fs.PathJoin(d.path, fileMaking), d.fs.PathJoin(d.path, fileFormat)); err != nil {
		return fmt.Errorf("embedded: %s: %w", d.path, err)
	}

	if err := syncDirectory(d.fs, d.path); err != nil {
		return fmt.Errorf("embedded: %s: %w", d.path, err)
	}

	d.fresh = false

	return nil
}

// close gives the directory to the next broker.
func (d *directory) close() error {
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("embedded: unlocking %s: %w", d.path, err)
	}

	return nil
}
