//nolint:wrapcheck,ireturn // a decorator passes files and errors on as they are
package embedded

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// guard stands between Pebble and the file system. Pebble ends the process, or blocks for ever, when its log cannot be
// written; a guard turns the first write that fails into the end of the broker instead:
//
//   - the failure is kept, and whoever waited for a write asks for it before he acknowledges anything;
//   - from then on nothing reaches the disk, so what is there is what a crash at that moment would have left;
//   - Pebble is told that all is well and goes on in memory, where it cannot block, until it is closed.
//
// After a full disk the broker goes on by itself with a new guard, once there is room (see heal).
type guard struct {
	vfs.FS

	dir string
	// keepFree is what the broker leaves free of the disk, in bytes.
	keepFree int64
	// heals says that the broker looks after a full disk by itself.
	heals atomic.Bool
	// memory takes the files that are made after the failure.
	memory *vfs.MemFS
	once   sync.Once
	// failed is closed after err was set.
	failed chan struct{}
	err    error
	// need is how many bytes must be free before the broker goes on after a full disk. It is set before failed is closed.
	need int64
}

var _ vfs.FS = (*guard)(nil)

func newGuard(o Options, fs vfs.FS) *guard {
	return &guard{
		FS: fs, dir: o.Dir, keepFree: max(o.KeepFree, 0), memory: vfs.NewMem(), failed: make(chan struct{}),
	}
}

// fail keeps the first failure.
func (g *guard) fail(what string, err error) {
	g.once.Do(func() {
		kind, cure := ErrFailed, "see to the disk, then close the broker and open it again"

		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			kind, cure = fmt.Errorf("%w: %w", ErrFailed, ErrDiskFull), "free some space, then close the broker and open it again"
			g.need = g.keepFree + g.logged()

			if g.heals.Load() {
				cure = fmt.Sprintf("the broker goes on by itself when %d bytes are free", g.need)
			}
		}

		g.err = fmt.Errorf("%w: %s: %s: %w; what was acknowledged is kept: %s", kind, g.dir, what, err, cure)
		close(g.failed)
	})
}

// logged returns how many bytes the logs have: as many may be written to tables when the store is opened again.
func (g *guard) logged() (size int64) {
	path := g.PathJoin(g.dir, dirPebble)

	names, err := g.List(path)
	if err != nil {
		return 0
	}

	for _, name := range names {
		if filepath.Ext(name) != ".log" {
			continue
		}

		if info, err := g.FS.Stat(g.PathJoin(path, name)); err == nil { // else it was removed just now
			size += info.Size()
		}
	}

	return size
}

// failure returns the failure, or nil.
func (g *guard) failure() error {
	select {
	case <-g.failed:
		return g.err
	default:
		return nil
	}
}

// try does op on the disk, and reports whether it was done there.
func (g *guard) try(what, path string, op func() error) bool {
	if g.failure() != nil {
		return false
	}

	err := op()
	if err != nil {
		g.fail(what+" "+path, err)
	}

	return err == nil
}

// Create makes a file on the disk, or in memory after a failure.
func (g *guard) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(name, category, func() (vfs.File, error) { return g.FS.Create(name, category) })
}

// ReuseForWrite is Create on the blocks of an old file.
func (g *guard) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return g.create(newname, category, func() (vfs.File, error) { return g.FS.ReuseForWrite(oldname, newname, category) })
}

func (g *guard) create(name string, category vfs.DiskWriteCategory, onDisk func() (vfs.File, error)) (vfs.File, error) {
	var file vfs.File

	if g.try("creating", name, func() (err error) { file, err = onDisk(); return err }) {
		return &guardedFile{File: file, guard: g, name: name}, nil
	}

	if err := g.memory.MkdirAll(g.PathDir(name), 0o755); err != nil {
		return nil, err
	}

	return g.memory.Create(name, category)
}

// Open opens what was made last under the name.
func (g *guard) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if g.failure() != nil {
		if file, err := g.memory.Open(name, opts...); err == nil {
			return file, nil
		}
	}

	return g.FS.Open(name, opts...)
}

// Stat describes what was made last under the name.
func (g *guard) Stat(name string) (vfs.FileInfo, error) {
	if g.failure() != nil {
		if info, err := g.memory.Stat(name); err == nil {
			return info, nil
		}
	}

	return g.FS.Stat(name)
}

// Remove leaves the disk as it is after a failure.
func (g *guard) Remove(name string) error {
	if g.failure() == nil {
		return g.FS.Remove(name)
	}

	_ = g.memory.Remove(name) // it is there, or on the disk, or nowhere: all are well

	return nil
}

// Rename leaves the disk as it is after a failure.
func (g *guard) Rename(oldname, newname string) error {
	if !g.try("renaming", oldname, func() error { return g.FS.Rename(oldname, newname) }) {
		_ = g.memory.Rename(oldname, newname)
	}

	return nil
}

// OpenDir opens a directory to sync it.
func (g *guard) OpenDir(name string) (vfs.File, error) {
	dir, err := g.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}

	return &guardedFile{File: dir, guard: g, name: name}, nil
}

// Unwrap returns the disk.
func (g *guard) Unwrap() vfs.FS { return g.FS }

// guardedFile is a file that was opened for writing before any failure.
type guardedFile struct {
	vfs.File

	guard *guard
	name  string
}

// try does op on the disk. After a failure it says nil for files that are only appended to, and the failure for tables,
// which are made and read as a whole: Pebble then makes them again, in memory.
func (f *guardedFile) try(what string, op func() error) error {
	if f.guard.try(what, f.name, op) {
		return nil
	}

	switch filepath.Ext(f.name) {
	case ".sst", ".blob":
		return f.guard.failure()
	default:
		return nil
	}
}

// Write writes to the disk, or nowhere.
func (f *guardedFile) Write(p []byte) (int, error) {
	return len(p), f.try("writing", func() error { _, err := f.File.Write(p); return err })
}

// WriteAt writes to the disk, or nowhere.
func (f *guardedFile) WriteAt(p []byte, at int64) (int, error) {
	return len(p), f.try("writing", func() error { _, err := f.File.WriteAt(p, at); return err })
}

// Sync syncs the file, or does nothing.
func (f *guardedFile) Sync() error { return f.try("syncing", f.File.Sync) }

// SyncData syncs the file, or does nothing.
func (f *guardedFile) SyncData() error { return f.try("syncing", f.File.SyncData) }

// SyncTo syncs a part of the file, or does nothing.
func (f *guardedFile) SyncTo(length int64) (bool, error) {
	var full bool

	err := f.try("syncing", func() (err error) { full, err = f.File.SyncTo(length); return err })

	return full, err
}

// Close closes the file, also after a failure.
func (f *guardedFile) Close() error {
	if err := f.File.Close(); err != nil {
		f.guard.fail("closing "+f.name, err)
	}

	return nil
}
