package file

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// keyed returns messages with a key each, whose bodies are numbers from 0.
func keyed(keys ...string) []*pipeline.Message {
	batch := make([]*pipeline.Message, len(keys))
	for i, key := range keys {
		batch[i] = &pipeline.Message{Key: key, Topic: "t", Body: fmt.Append(nil, i)}
	}

	return batch
}

// tree returns the files below a folder, each with its text.
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()

	all := make(map[string]string)

	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}

		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		all[filepath.ToSlash(name)] = unpack(t, name, text)

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestAMessageNamesItsFile(t *testing.T) {
	t.Parallel()

	top := t.TempDir()
	w := setup(t, Options{Path: filepath.Join(top, "out-{topic}", "{key}", "x-{body.n}.jsonl")}).open(t)

	batch := keyed("a", "b", "a", "c", "d")
	for i, n := range []string{`1`, `1`, `1`, `"z"`, `[2]`} {
		batch[i].Body = []byte(`{"n":` + n + `,"i":` + string(rune('0'+i)) + `}`)
	}

	if err := w.sink.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}

	want := map[string]string{
		"out-t/a/x-1.jsonl":   `{"n":1,"i":0}` + "\n" + `{"n":1,"i":2}` + "\n",
		"out-t/b/x-1.jsonl":   `{"n":1,"i":1}` + "\n",
		"out-t/c/x-z.jsonl":   `{"n":"z","i":3}` + "\n",
		"out-t/d/x-[2].jsonl": `{"n":[2],"i":4}` + "\n",
	}
	if got := tree(t, top); !maps.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

func TestNoValueLeadsOutOfTheFolder(t *testing.T) {
	t.Parallel()

	for key, want := range map[string]string{
		"..": "%2E.", ".": "%2E", "../../x": "%2E.%2F..%2Fx", "/etc/passwd": "%2Fetc%2Fpasswd", `..\..\x`: `%2E.%5C..%5Cx`, `C:\x`: "C%3A%5Cx",
		"a/b": "a%2Fb", "a%2Fb": "a%252Fb", "a\x00b": "a%00b", "a\nb": "a%0Ab", ".hidden": "%2Ehidden", "a.b": "a.b", "größe 7": "größe 7",
		"\xff": "%FF", "a\u2028b": "a%E2%80%A8b", "\u202e": "%E2%80%AE", "x?*|<>\"": "x%3F%2A%7C%3C%3E%22", "~": "~", "-rf": "-rf", "a b": "a b",
		strings.Repeat("x", longestName): strings.Repeat("x", longestName), strings.Repeat("x", longestName+1): "", "": "",
		strings.Repeat("/", longestName): "",
	} {
		top := t.TempDir()
		w := setup(t, Options{Path: filepath.Join(top, "in", "{key}")}).open(t)

		err := w.sink.Write(t.Context(), keyed(key))
		if (err != nil) != (want == "") || err != nil && (!errors.Is(cause(err), ErrName) || !pipeline.IsRejected(cause(err))) {
			t.Errorf("%.50q: %v", key, err)
		}

		files := tree(t, top)
		if want == "" && len(files) > 0 || want != "" && !maps.Equal(files, map[string]string{"in/" + want: "0\n"}) {
			t.Errorf("%.50q makes %.100q, want %q", key, files, want)
		}

		w.close(t)
	}
}

func TestNoValueLeadsOutOfAFolderOfItsOwn(t *testing.T) {
	t.Parallel()

	for _, path := range []string{"{key}/x", "in/{key}/x", "in/{key}{topic}/x", "in/x.{key}/y", "in/.{key}/x"} {
		top := t.TempDir()
		w := setup(t, Options{Path: filepath.Join(top, "a", "b") + "/" + path}).open(t)

		for _, key := range []string{"..", ".", "./..", "", "...", "/", "../.."} {
			_ = w.sink.Write(t.Context(), keyed(key))
		}

		for name := range tree(t, top) {
			if depth := strings.Count(name, "/"); !strings.HasPrefix(name, "a/b/") || depth != strings.Count(path, "/")+2 {
				t.Errorf("%s: there is %s", path, name)
			}
		}
	}
}

func TestAMessageWithoutTheValueIsRejectedAlone(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Path: filepath.Join(t.TempDir(), "{body.a.b}")}).open(t)
	err := w.sink.Write(t.Context(), batchOf(`{"a":{"b":"x"}}`, `{"a":{}}`, `7`, `{"a":{"b":null}}`, `no`))

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(failures.Failed) != 4 {
		t.Fatalf("the error is %v", err)
	}

	for i, want := range []error{nil, ErrName, ErrName, ErrName, ErrNotALine} {
		if got := failures.Failed[i]; !errors.Is(got, want) || (want != nil) != pipeline.IsRejected(got) {
			t.Errorf("message %d: %v, want %v", i, got, want)
		}
	}
}

func TestOnlySoManyFilesAreOpen(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	w := setup(t, Options{Path: filepath.Join(folder, "{key}"), MaxOpen: 2}).open(t)
	open := 0
	w.sink.open = func(path string) (opened, error) {
		o, err := openFile(path)
		open++
		o.file = counted{o.file, &open}

		return o, err
	}

	for i, step := range []struct {
		keys   string
		opened int64
	}{{"a b", 2}, {"a", 2}, {"c", 3}, {"a", 3}, {"b", 4}, {"a c b d a", 8}} { // in the last one a is there, c and b are not
		if err := w.sink.Write(t.Context(), keyed(strings.Fields(step.keys)...)); err != nil {
			t.Fatal(err)
		}

		if got := w.sink.Stats().Opened; got != step.opened-b2i(i == 5) || open > 2 {
			t.Errorf("step %d: opened %d times, want %d; %d are open", i, got, step.opened, open)
		}
	}

	w.close(t)

	if open != 0 {
		t.Errorf("%d files are open after Close", open)
	}

	want := map[string]string{"a": "0\n0\n0\n0\n4\n", "b": "1\n0\n2\n", "c": "0\n1\n", "d": "3\n"}
	if got := tree(t, folder); !maps.Equal(got, want) {
		t.Errorf("the folder holds %q, want %q", got, want)
	}
}

func b2i(b bool) int64 {
	if b {
		return 1
	}

	return 0
}

type counted struct {
	handle

	open *int
}

func (c counted) Close() error {
	*c.open--

	return c.handle.Close()
}

func TestEachFileIsPutAsideByItselfAndPacked(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		o := Options{Path: filepath.Join(folder, "{key}", "x.jsonl"), MaxOpen: 1, Compress: CompressZstd, Rotate: Rotate{Size: 4}}
		w := setup(t, o).open(t)

		for _, keys := range []string{"a b a", "a", "b", "a", "b"} { // all but one are closed for others
			if err := w.sink.Write(t.Context(), keyed(strings.Fields(keys)...)); err != nil {
				t.Fatal(err)
			}
		}

		w.close(t)

		want := map[string]string{
			"a/x-20000101T000000.jsonl.zst": "0\n2\n", "a/x.jsonl": "0\n0\n",
			"b/x-20000101T000000.jsonl.zst": "1\n0\n", "b/x.jsonl": "0\n",
		}
		if got := tree(t, folder); !maps.Equal(got, want) {
			t.Errorf("by size, the folder holds %q, want %q", got, want)
		}

		if got := w.sink.Stats(); got.Rotated != 2 || got.Compressed != 2 {
			t.Errorf("counted %+v", got)
		}

		o.Rotate = Rotate{Every: plugins.Duration(time.Hour)}
		w = setup(t, o).open(t)

		<-time.After(time.Hour)

		for key, age := range map[string]time.Duration{"a": time.Minute, "b": -time.Minute} { // files have the time of the real clock
			if err := os.Chtimes(filepath.Join(folder, key, "x.jsonl"), time.Time{}, time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}

		if err := w.sink.Write(t.Context(), keyed("a", "b")); err != nil {
			t.Fatal(err)
		}

		w.close(t)

		want["a/x-20000101T010000.jsonl.zst"], want["a/x.jsonl"], want["b/x.jsonl"] = "0\n0\n", "0\n", "0\n1\n"
		if got := tree(t, folder); !maps.Equal(got, want) {
			t.Errorf("by the clock, the folder holds %q, want %q", got, want)
		}
	})
}

func TestAFileCannotBeTakenForOneThatWasPutAside(t *testing.T) {
	t.Parallel()

	w := setup(t, Options{Path: filepath.Join(t.TempDir(), "{key}"), Rotate: Rotate{Size: 1}}).open(t)

	for key, bad := range map[string]bool{
		"a-20260102T030405": true, "a-20260102T030405-2": true, "a-20260102T030405.zst": true, "a-20260102T030405.gz.tmp": true,
		"a-20260102": false, "a-20260102T030405x": false, "20260102T030405": false,
	} {
		if err := w.sink.Write(t.Context(), keyed(key)); (err != nil) != bad || bad && !errors.Is(cause(err), ErrName) {
			t.Errorf("%s: %v", key, err)
		}
	}

	w = setup(t, Options{Path: filepath.Join(t.TempDir(), "{key}")}).open(t)
	if err := w.sink.Write(t.Context(), keyed("a-20260102T030405")); err != nil {
		t.Errorf("where nothing is put aside: %v", err)
	}
}

func TestAFileThatFailsFailsItsMessagesOnly(t *testing.T) {
	t.Parallel()

	folder := t.TempDir()
	w := setup(t, Options{Path: filepath.Join(folder, "{key}", "x")}).open(t)

	if err := os.WriteFile(filepath.Join(folder, "b"), nil, 0o600); err != nil { // where a folder should be
		t.Fatal(err)
	}

	err := w.sink.Write(t.Context(), keyed("a", "b", "a", "b", "c"))

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(failures.Failed) != 2 || failures.Failed[1] == nil || failures.Failed[3] == nil || pipeline.IsRejected(failures.Failed[1]) {
		t.Errorf("the error is %v", err)
	}

	if got := tree(t, folder); !maps.Equal(got, map[string]string{"a/x": "0\n2\n", "b": "", "c/x": "4\n"}) {
		t.Errorf("the folder holds %q", got)
	}

	if got := w.sink.Stats().Lines; got != 3 {
		t.Errorf("%d lines counted", got)
	}
}

func TestPathsWithWrongNamesAreRefused(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]map[string]any{
		`path: unknown name "kye"`: {"path": "x/{kye}"},
		"is not closed":            {"path": "x/{key"},
		"max_open: is negative":    {"path": "x", "max_open": -1},
	} {
		if err := plugins.Decode(options, &Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func FuzzName(f *testing.F) {
	for _, key := range []string{"..", "a/../b", "\x00", "%2e", `\`, "CON", "x.", "\xff\xfe"} {
		f.Add(key, "x")
	}

	n, err := newNamer(Options{Path: "out/{key}/a{tag}.jsonl"})
	if err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, key, tag string) {
		path, err := n.of(&pipeline.Message{Key: key, Tag: tag})
		if err != nil {
			return
		}

		parts := strings.Split(path, "/")
		if len(parts) != 3 || parts[0] != "out" || filepath.Clean(path) != path || strings.ContainsAny(path, "\x00\\") || parts[1][0] == '.' {
			t.Errorf("%q and %q make %q", key, tag, path)
		}

		again, err := n.of(&pipeline.Message{Key: key + "x", Tag: tag})
		if err == nil && again == path {
			t.Errorf("%q and another key make %q", key, path)
		}
	})
}
