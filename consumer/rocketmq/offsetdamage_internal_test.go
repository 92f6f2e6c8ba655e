package rocketmq

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// offsetsFiles returns the only files of a directory of offsets.
func offsetsFiles(dir string) (file, backup string) {
	return filepath.Join(dir, "one", "G", ownFile), filepath.Join(dir, "one", "G", ownBackup)
}

// wantNoWrongOffset opens a damaged directory: it is refused by the name of the file, or the offset is one of those wanted.
func wantNoWrongOffset(t *testing.T, dir, what string, want ...consumer.Checkpoint) (refused bool) {
	t.Helper()

	f, err := openFile(t, dir)
	if err != nil {
		if !errors.Is(err, ErrOffsetFile) || !strings.Contains(err.Error(), ownFile) {
			t.Errorf("%s: %v, want ErrOffsetFile and the name of the file", what, err)
		}

		return true
	}

	defer f.close()

	c, err := f.stored(queue(0))
	if err != nil || !slices.ContainsFunc(want, func(w consumer.Checkpoint) bool {
		return w.Next == c.Next && slices.Equal(w.Done, c.Done)
	}) {
		t.Errorf("%s: stored is %v, %v, want one of %v", what, c, err, want)
	}

	if f.passed != nil && !strings.Contains(f.passed.Error(), ownFile) {
		t.Errorf("%s: the copy is taken, because %v", what, f.passed)
	}

	return false
}

// TestDamagedOffsetsAreNeverTakenForOthers flips each bit of the file, and cuts it off at each byte, with and without the copy.
func TestDamagedOffsetsAreNeverTakenForOthers(t *testing.T) {
	t.Parallel()

	dir, want := written(t)
	file, backup := offsetsFiles(dir)

	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	former, err := os.ReadFile(backup)
	if err != nil {
		t.Fatal(err)
	}

	put := func(body, copied []byte) {
		if err := errors.Join(os.RemoveAll(backup), os.WriteFile(file, body, 0o600)); err != nil {
			t.Fatal(err)
		}

		if copied != nil {
			if err := os.WriteFile(backup, copied, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}

	var refusals int

	check := func(what string, body []byte) {
		put(body, former)

		if wantNoWrongOffset(t, dir, what, want, consumer.Checkpoint{Next: 5}) {
			t.Errorf("%s: refused, though there is a copy", what)
		}

		put(body, nil)

		if wantNoWrongOffset(t, dir, what+", without a copy", want) {
			refusals++
		}
	}

	for bit := range 8 * len(whole) {
		flipped := slices.Clone(whole)
		flipped[bit/8] ^= 1 << (bit % 8)
		check(fmt.Sprintf("bit %d of byte %d", bit%8, bit/8), flipped)
	}

	for size := range whole {
		check(fmt.Sprintf("the first %d bytes", size), whole[:size])
	}

	if least := 8*len(whole)*9/10 + len(whole); refusals < least {
		t.Errorf("%d were refused, want %d: only letters of names may be written otherwise", refusals, least)
	}
}

// faultyFile is a file that fails as its fields say.
type faultyFile struct {
	*os.File

	half, sync error
}

// refusal says what the system says: with the operation and the path.
func refusal(op, path string, err error) error {
	if err == nil {
		return nil
	}

	return &fs.PathError{Op: op, Path: path, Err: err}
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if f.half == nil {
		return f.File.Write(p)
	}

	n, err := f.File.Write(p[:len(p)/2])

	return n, errors.Join(err, refusal("write", f.Name(), f.half))
}

func (f *faultyFile) Sync() error {
	return errors.Join(f.File.Sync(), refusal("sync", f.Name(), f.sync))
}

// TestRefusedCommitKeepsTheOffsetBefore commits on a disk that refuses: the error says so, what was confirmed before is what a
// next process finds, and the next commit is as good as any when there is room again.
func TestRefusedCommitKeepsTheOffsetBefore(t *testing.T) {
	t.Parallel()

	for what, fault := range map[string]struct {
		create, half, sync error
	}{
		"no room for a file":             {create: syscall.ENOSPC},
		"room for half of it":            {half: syscall.ENOSPC},
		"an error in the middle":         {half: syscall.EIO},
		"a sync that fails":              {sync: syscall.EIO},
		"a sync that finds no room":      {sync: syscall.ENOSPC},
		"a quota, and a sync that fails": {half: syscall.EDQUOT, sync: syscall.EIO},
	} {
		dir, want := written(t)

		f, err := openFile(t, dir)
		if err != nil {
			t.Fatal(err)
		}

		f.create = func(name string) (syncedFile, error) {
			if fault.create != nil {
				return nil, refusal("open", name, fault.create)
			}

			file, err := os.Create(filepath.Clean(name))

			return &faultyFile{File: file, half: fault.half, sync: fault.sync}, err
		}

		cause := cmp.Or(fault.create, fault.half, fault.sync)

		for range 2 {
			err := f.commit(queue(0), consumer.Checkpoint{Next: 8})
			if !errors.Is(err, ErrOffsetFile) || !errors.Is(err, cause) || !strings.Contains(err.Error(), dir) {
				t.Errorf("%s: the commit is %v, want %v and the directory", what, err, cause)
			}
		}

		if c, err := f.stored(queue(0)); err != nil || c.Next != want.Next {
			t.Errorf("%s: stored is %v, %v after the refusal, want %v", what, c, err, want)
		}

		f.close()
		wantNoWrongOffset(t, dir, what, want)

		if f, err = openFile(t, dir); err != nil {
			t.Fatal(err)
		}

		if err := f.commit(queue(0), consumer.Checkpoint{Next: 9}); err != nil {
			t.Errorf("%s: with room again: %v", what, err)
		}

		f.close()
		wantNoWrongOffset(t, dir, what+", and room again", consumer.Checkpoint{Next: 9})
	}
}

// TestConfirmedOffsetsAreOnDisk counts what was written and not synced when a commit is confirmed.
func TestConfirmedOffsetsAreOnDisk(t *testing.T) {
	t.Parallel()

	f, err := openFile(t, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}

	var last *countingFile

	f.create = func(name string) (syncedFile, error) {
		file, err := createFile(name)
		last = &countingFile{syncedFile: file}

		return last, err
	}

	for next := range pipeline.Offset(3) {
		if err := f.commit(queue(0), consumer.Checkpoint{Next: next}); err != nil {
			t.Fatal(err)
		}

		if last.unsafe > 0 {
			t.Errorf("a commit is confirmed, and a power cut takes %d bytes of it", last.unsafe)
		}
	}
}

// countingFile counts the bytes that a power cut would take.
type countingFile struct {
	syncedFile

	unsafe int
}

func (f *countingFile) Write(p []byte) (int, error) {
	f.unsafe += len(p)

	return f.syncedFile.Write(p)
}

func (f *countingFile) Sync() error {
	f.unsafe = 0

	return f.syncedFile.Sync()
}
