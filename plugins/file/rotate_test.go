package file

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/millrace/millrace/plugins"
)

// folder returns the names of the files beside the one of the world, each with its text, unpacked. Times are replaced by T.
func (w *world) folder(t *testing.T) map[string]string {
	t.Helper()

	entries, err := os.ReadDir(filepath.Dir(w.path))
	if err != nil {
		t.Fatal(err)
	}

	all := make(map[string]string)

	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(w.path), e.Name()))
		if err != nil {
			t.Fatal(err)
		}

		all[regexp.MustCompile(`\d{8}T\d{6}`).ReplaceAllString(e.Name(), "T")] = unpack(t, e.Name(), text)
	}

	return all
}

func unpack(t *testing.T, name string, text []byte) string {
	t.Helper()

	var (
		from io.Reader = bytes.NewReader(text)
		err  error
	)

	switch filepath.Ext(name) {
	case ".gz":
		from, err = gzip.NewReader(from)
	case ".zst":
		from, err = zstd.NewReader(from, zstd.WithDecoderConcurrency(1))
	}

	if err != nil {
		t.Fatal(err)
	}

	plain, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}

	return string(plain)
}

func (w *world) write(t *testing.T, bodies ...string) {
	t.Helper()

	if err := w.sink.Write(t.Context(), batchOf(bodies...)); err != nil {
		t.Fatal(err)
	}
}

func (w *world) close(t *testing.T) {
	t.Helper()

	if err := w.sink.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAFileIsPutAsideBeforeItGetsTooLarge(t *testing.T) {
	t.Parallel()

	for _, how := range []Compress{CompressNone, CompressGzip, CompressZstd} {
		synctest.Test(t, func(t *testing.T) { // so that all files are put aside in the same second
			w := setup(t, Options{Rotate: Rotate{Size: 10}, Compress: how}).open(t)

			w.write(t, "1", "2", "3", "4", "5")   // as large as it may get
			w.write(t, `"larger than ten bytes"`) // has one for itself
			w.write(t, "6")                       // has room for more
			w.write(t, "7", "8")                  // goes there too
			w.write(t, `"1234"`)                  // does not
			w.write(t)                            // is nothing
			w.close(t)

			z := how.ending()
			want := map[string]string{
				"lines-T.jsonl" + z: "1\n2\n3\n4\n5\n", "lines-T-2.jsonl" + z: "\"larger than ten bytes\"\n",
				"lines-T-3.jsonl" + z: "6\n7\n8\n", "lines.jsonl": "\"1234\"\n",
			}

			if got := w.folder(t); !maps.Equal(got, want) {
				t.Errorf("%s: the folder holds %q, want %q", z, got, want)
			}

			stats, packed := w.sink.Meter(), int64(3)
			if how == CompressNone {
				packed = 0
			}

			if stats["rotated"] != 3 || stats["compressed"] != packed || stats["lines"] != 10 {
				t.Errorf("%s: counted %v", z, stats)
			}
		})
	}
}

func TestAFileCoversASpanOfTime(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, Options{Rotate: Rotate{Every: plugins.Duration(time.Hour)}}).open(t)

		<-time.After(20 * time.Minute)
		w.write(t, "1")
		<-time.After(39 * time.Minute)
		w.write(t, "2")
		<-time.After(time.Minute)
		w.write(t, "3")
		w.close(t)

		// Also over a restart, by when the file was last written to.
		for i, age := range []time.Duration{10 * time.Minute, 2 * time.Hour} {
			if err := os.Chtimes(w.path, time.Time{}, time.Now().Add(20*time.Minute-age)); err != nil {
				t.Fatal(err)
			}

			w.open(t)
			w.write(t, string(rune('4'+i)))
			w.close(t)
		}

		got := slices.Sorted(maps.Values(w.folder(t)))
		if want := []string{"1\n2\n", "3\n4\n", "5\n"}; !slices.Equal(got, want) {
			t.Errorf("the folder holds %q, want %q", got, want)
		}

		if name := filepath.Join(filepath.Dir(w.path), "lines-20000101T010000.jsonl"); !exists(name) {
			t.Errorf("there is no %s", name)
		}
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)

	return err == nil
}

func TestWhatACrashHasLeftUnpackedIsPackedLater(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Rotate: Rotate{Size: 10}, Compress: CompressZstd})
	folder := filepath.Dir(w.path)
	half := []string{"lines-20260101T000000.jsonl.zst.tmp", "lines-20260102T000000-2.jsonl"}

	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}

	for _, name := range append(half, "lines-20260101T000000.jsonl", "lines-of-others.jsonl", "lines.jsonl") {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	w.open(t)
	w.close(t)

	want := map[string]string{
		"lines-T.jsonl.zst": "1\n", "lines-T-2.jsonl.zst": "1\n", "lines-of-others.jsonl": "1\n", "lines.jsonl": "1\n",
	}
	if got := w.folder(t); !maps.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

func TestAFileThatCannotBePutAsideIsWrittenOn(t *testing.T) {
	t.Parallel()

	for _, policy := range []Fsync{FsyncBatch, FsyncNever} { // what is put aside is synced whatever the policy is
		w := setup(t, Options{Rotate: Rotate{Size: 4}, Fsync: policy}).open(t)
		w.write(t, "1")

		full := errors.New("the disk is gone")
		w.disk.sync = full

		if err := w.sink.Write(t.Context(), batchOf("22", "33")); !errors.Is(cause(err), full) {
			t.Errorf("the error is %v", err)
		}

		w.disk.sync = nil
		w.write(t, "22", "33")
		w.close(t)

		if got := w.folder(t); !maps.Equal(got, map[string]string{"lines-T.jsonl": "1\n", "lines.jsonl": "22\n33\n"}) {
			t.Errorf("the folder holds %q", got)
		}
	}
}

func TestWhatCannotBePackedStaysAndIsLogged(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Rotate: Rotate{Size: 1}, Compress: CompressGzip}).open(t)
	w.sink.packer.add(filepath.Join(filepath.Dir(w.path), "not there"))
	w.close(t)

	if got := w.logs.FilterMessageSnippet("cannot be packed").Len(); got != 1 || w.sink.Stats().Compressed != 0 {
		t.Errorf("logged %d times, counted %+v", got, w.sink.Stats())
	}
}

func TestAPackedFileIsSafeBeforeItTakesThePlaceOfTheOther(t *testing.T) {
	t.Parallel()

	for _, how := range []Compress{CompressGzip, CompressZstd} {
		out, err := os.Create(filepath.Join(t.TempDir(), "packed"))
		if err != nil {
			t.Fatal(err)
		}

		disk := &faultyDisk{handle: out}
		if err := writePacked(disk, strings.NewReader("1\n"), how); err != nil || disk.syncs == 0 || disk.unsafe > 0 {
			t.Errorf("%d: a power cut takes %d bytes after %d syncs: %v", how, disk.unsafe, disk.syncs, err)
		}
	}

	out, err := os.Create(filepath.Join(t.TempDir(), "packed"))
	if err != nil {
		t.Fatal(err)
	}

	disk := &faultyDisk{handle: out, sync: syscall.EIO}
	if err := writePacked(disk, strings.NewReader("1\n"), CompressGzip); !errors.Is(err, syscall.EIO) {
		t.Errorf("the disk fails, and the error is %v", err)
	}
}

func TestOptionsOfRotationAreChecked(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]map[string]any{
		"set rotate.size or rotate.every":        {"path": "x", "compress": "gzip"},
		`"zip" is none of none, gzip and zstd`:   {"path": "x", "compress": "zip"},
		`rotate.every: "daily" is no duration`:   {"path": "x", "rotate": map[string]any{"every": "daily"}},
		`rotate.age: unknown option; there are:`: {"path": "x", "rotate": map[string]any{"age": "1h"}},
	} {
		if err := plugins.Decode(options, &Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := New(Options{Path: "x", Compress: CompressGzip}, nil); err == nil {
		t.Error("packing what is never put aside is no error")
	}
}

func TestAnEmptyFileIsNotPutAside(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Rotate: Rotate{Size: 4, Every: plugins.Duration(time.Hour)}}).open(t)
	w.write(t, "1234567")
	w.close(t)

	if got := w.folder(t); !maps.Equal(got, map[string]string{"lines.jsonl": "1234567\n"}) {
		t.Errorf("the folder holds %q", got)
	}
}

func TestAFileThatSomebodyElseWritesToIsNotPutAside(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Rotate: Rotate{Size: 4}}).open(t)
	w.write(t, "1")

	f, err := os.OpenFile(w.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}

	_, err = f.WriteString("of another\n")
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}

	err = cause(w.sink.Write(t.Context(), batchOf("22", "33")))
	if err == nil || !strings.Contains(err.Error(), "somebody else writes to it") || len(w.folder(t)) != 1 {
		t.Errorf("the error is %v, the folder holds %q", err, w.folder(t))
	}
}
