package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// wantRefused opens a directory that must be refused with a kind of error, which must name the directory.
func wantRefused(t *testing.T, o Options, want error, words ...string) {
	t.Helper()

	b, err := Open(o)
	if err == nil {
		t.Fatalf("Open took it; %v", b.Close())
	}

	if !errors.Is(err, want) {
		t.Errorf("Open: %v, want %v", err, want)
	}

	for _, word := range append(words, o.Dir) {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("Open: %v; it does not say %q", err, word)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

func TestSecondBrokerIsRefused(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	openWorld(t, Options{Dir: dir})
	wantRefused(t, Options{Dir: dir}, ErrInUse, "another directory")

	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}

	if b, err := Open(Options{Dir: link}); !errors.Is(err, ErrInUse) {
		t.Errorf("Open by another name: %v, %v", b, err)
	}
}

func TestSecondProcessIsRefused(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	process, stdin, _ := child(t, roleHold, dir)
	wantRefused(t, Options{Dir: dir}, ErrInUse, "another directory")

	if err := errors.Join(stdin.Close(), process.Wait()); err != nil {
		t.Fatal(err)
	}

	openWorld(t, Options{Dir: dir}) // it is free again
}

func TestForeignDirectoryIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	write(t, filepath.Join(dir, "thesis.txt"), "years of work")
	wantRefused(t, Options{Dir: dir}, ErrForeign, "thesis.txt", "empty directory")

	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("the directory has %v now, %v", files, err)
	}

	dir = t.TempDir()
	write(t, filepath.Join(dir, fileFormat), "a format of something else\n")
	wantRefused(t, Options{Dir: dir}, ErrForeign)

	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	wantRefused(t, Options{Dir: file}, syscall.ENOTDIR)
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	openWorld(t, Options{Dir: dir}).close()

	format := filepath.Join(dir, fileFormat)
	text := read(t, format)
	write(t, format, strings.Replace(text, "format 1", "format 2", 1))
	wantRefused(t, Options{Dir: dir}, ErrNewer, "format 2", "newer program")

	write(t, format, strings.Replace(text, "store", "st", 1))
	wantRefused(t, Options{Dir: dir}, ErrDamaged, fileFormat)

	write(t, format, text)
	openWorld(t, Options{Dir: dir})
}

func TestLostDatabaseIsNotMadeAnew(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	openWorld(t, Options{Dir: dir}).close()

	if err := os.RemoveAll(filepath.Join(dir, dirPebble)); err != nil {
		t.Fatal(err)
	}

	wantRefused(t, Options{Dir: dir}, ErrDamaged, "copy")
}

// TestBrokenOffBeginning opens a directory whose making was broken off before it was settled.
func TestBrokenOffBeginning(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	openWorld(t, Options{Dir: dir}).close()

	if err := os.Rename(filepath.Join(dir, fileFormat), filepath.Join(dir, fileMaking)); err != nil {
		t.Fatal(err)
	}

	w := openWorld(t, Options{Dir: dir})
	w.topic("t", 1)
	w.reopen(Options{Dir: dir})

	if topics := w.Topics(); len(topics) != 1 {
		t.Errorf("topics %v", topics)
	}
}

func TestReadOnlyDirectoryIsRefused(t *testing.T) {
	t.Parallel()

	disk := vfs.NewMem()
	if err := disk.MkdirAll(flakyDir, 0o755); err != nil {
		t.Fatal(err)
	}

	readOnly := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			return &os.PathError{Op: "open", Path: op.Path, Err: syscall.EROFS}
		}

		return nil
	}))
	wantRefused(t, Options{Dir: flakyDir, FS: readOnly}, syscall.EROFS, "to write to")

	if os.Getuid() == 0 {
		t.Log("as root every directory can be written: only the read-only disk was tried")

		return
	}

	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}

	wantRefused(t, Options{Dir: dir}, os.ErrPermission, "to write to")
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()

	_, err := Open(Options{
		HoldPull: -1, Patience: -1, PruneEvery: -1, Retention: Retention{Age: -1},
		Topics: map[string]Retention{"a b": {Bytes: -1}, "ok": {Unread: 7}},
	})
	if err == nil {
		t.Fatal("Open took it")
	}

	for _, word := range []string{
		"Dir", "HoldPull", "Patience", "PruneEvery", "Options.Retention", "a b", "Topics[a b]", "Topics[ok]",
	} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the error does not name %s:\n%v", word, err)
		}
	}
}
