package enrich_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/enrich"
)

const stations = "id,name,country\nXA,\"Alpha, the first\",DE\nXB,,FR\n"

// file is a table that changes.
type file struct {
	path string
	age  time.Duration
}

func (f *file) write(tb testing.TB, text string) {
	tb.Helper()

	// A time of its own for each change, however coarse the clock of the file system is.
	f.age += time.Second
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(f.age)

	if err := errors.Join(os.WriteFile(f.path, []byte(text), 0o600), os.Chtimes(f.path, at, at)); err != nil {
		tb.Fatal(err)
	}
}

func table(tb testing.TB, name, text string) *file {
	tb.Helper()

	f := &file{path: filepath.Join(tb.TempDir(), name)}
	f.write(tb, text)

	return f
}

func source(tb testing.TB, options map[string]any, log *zap.Logger) (*enrich.Source, error) {
	tb.Helper()

	all := map[string]any{"key": "key"}
	maps.Copy(all, options)

	var o enrich.Options
	if err := plugins.Decode(all, &o); err != nil {
		tb.Fatal(err)
	}

	return enrich.New(o, log)
}

func lane(tb testing.TB, options map[string]any) pipeline.Transform {
	tb.Helper()

	s, err := source(tb, options, nil)
	if err != nil {
		tb.Fatal(err)
	}

	l, err := s.Lane()
	if err != nil {
		tb.Fatal(err)
	}

	return l
}

func message(key string) *pipeline.Message {
	m := pipelinetest.Message(`{"station":"XB","n":7}`)
	m.Key = key

	return m
}

// props runs a message of a key through a lane and returns the properties it comes out with; nil when it does not come out.
func props(tb testing.TB, l pipeline.Transform, key string) map[string]string {
	tb.Helper()

	var next pipelinetest.Recorder
	if err := l.Transform(tb.Context(), message(key), next.Emit); err != nil {
		tb.Fatal(err)
	}

	if len(next.Messages) == 0 {
		return nil
	}

	return next.Messages[0].Props
}

func TestEnrichIsATransform(t *testing.T) {
	t.Parallel()

	f := table(t, "stations.csv", stations)
	want := message("XA")
	want.Props = map[string]string{"name": "Alpha, the first", "country": "DE"}

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return lane(t, map[string]any{"table": f.path}), nil },
		pipelinetest.Case{Name: "a row", In: message("XA"), Want: []*pipeline.Message{want}},
		pipelinetest.Case{Name: "no row", In: message("XC"), Want: []*pipeline.Message{message("XC")}},
	)
}

func TestAllFormsOfATableSayTheSame(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"a.csv":    "\ufeff" + stations,
		"b.tsv":    strings.NewReplacer("\"", "", ", ", ", ", ",", "\t").Replace(stations),
		"c.json":   ` [{"id":"XA","name":"Alpha, the first","country":"DE"},{"id":"XB","name":"","country":"FR"}]`,
		"d.jsonl":  `{"country":"DE","id":"XA","name":"Alpha, the first"}` + "\n" + `{"id":"XB","name":"","country":"FR"}` + "\n",
		"e.ndjson": `{"id":"XA","name":"Alpha, the first","country":"DE"} {"id":"XB","name":"","country":"FR"}`,
	} {
		l := lane(t, map[string]any{"table": table(t, name, text).path, "column": "id"})

		if got := props(t, l, "XA"); !maps.Equal(got, map[string]string{"name": "Alpha, the first", "country": "DE"}) {
			t.Errorf("%s: %q", name, got)
		}

		if got := props(t, l, "XB"); !maps.Equal(got, map[string]string{"name": "", "country": "FR"}) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestColumnsAreChosenAndNamed(t *testing.T) {
	t.Parallel()

	csv := table(t, "stations.data", strings.ReplaceAll(stations, ",", ";"))
	lines := table(t, "numbers.jsonl", `{"n":7,"v":1.50}{"n":true,"v":null,"w":{"a":[1]},"x":"y"}`)

	for _, c := range []struct {
		options map[string]any
		key     string
		want    map[string]string
	}{
		{map[string]any{"columns": []any{"country"}, "into": "props.station"}, "XB", map[string]string{"station.country": "FR"}},
		{map[string]any{"column": "country", "columns": []any{"id"}, "key": "key"}, "DE", map[string]string{"id": "XA"}},
		{map[string]any{"key": "body.station"}, "", map[string]string{"name": "", "country": "FR"}},
		{map[string]any{"table": lines.path, "column": "n", "key": "body.n", "format": "auto"}, "", map[string]string{"v": "1.50"}},
		{map[string]any{"table": lines.path, "column": "n", "format": "json"}, "true", map[string]string{"w": `{"a":[1]}`, "x": "y"}},
		{map[string]any{"table": lines.path, "column": "n", "format": "json", "columns": []any{"x", "v"}}, "true", map[string]string{"x": "y"}},
	} {
		options := map[string]any{"table": csv.path, "format": "csv", "separator": ";"}
		if c.options["table"] != nil {
			options = nil
		}

		all := maps.Clone(c.options)
		maps.Copy(all, options)

		if got := props(t, lane(t, all), c.key); !maps.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.options, got, c.want)
		}
	}
}

func TestAMessageWithoutARowPassesIsRejectedOrDropped(t *testing.T) {
	t.Parallel()

	f := table(t, "stations.csv", stations)

	for _, key := range []string{"body.none", "key"} {
		for missing, want := range map[string]int{"pass": 1, "reject": 0, "drop": 0} {
			l := lane(t, map[string]any{"table": f.path, "missing": missing, "key": key})

			var next pipelinetest.Recorder

			err := l.Transform(t.Context(), message("nowhere"), next.Emit)
			if (missing == "reject") != errors.Is(err, enrich.ErrNoRow) || (err != nil) != pipeline.IsRejected(err) {
				t.Errorf("%s, %s: the error is %v", key, missing, err)
			}

			meter, _ := l.(pipeline.Meter)
			if len(next.Messages) != want || meter.Meter()["missed"] != 1 {
				t.Errorf("%s, %s: %d outputs, counted %v", key, missing, len(next.Messages), meter.Meter())
			}
		}
	}

	l := lane(t, map[string]any{"table": f.path, "key": "body.station"})

	err := l.Transform(t.Context(), pipelinetest.Message("no JSON"), (&pipelinetest.Recorder{}).Emit)
	if !pipeline.IsRejected(err) {
		t.Errorf("a body that is no JSON: %v", err)
	}
}

func TestABadTableStopsTheStart(t *testing.T) {
	t.Parallel()

	for want, c := range map[string]struct {
		name, text string
		options    map[string]any
	}{
		"the file is empty":                       {"a.csv", " \n", nil},
		"line 3: the key \"XA\" is there twice":   {"a.csv", "id,n\nXA,1\nXA,2\n", nil},
		"line 2: the key is empty":                {"a.csv", "id,n\n,1\n", nil},
		"wrong number of fields":                  {"a.csv", "id,n\nXA\n", nil},
		"there is no column \"m\" among":          {"a.csv", "id,n\nXA,1\n", map[string]any{"columns": []any{"m"}}},
		"there is no column \"key\" among":        {"a.csv", "id,n\nXA,1\n", map[string]any{"column": "key"}},
		"there are two columns \"n\"":             {"a.csv", "id,n,n\nXA,1,2\n", nil},
		"has more than 10 bytes; max_size allows": {"a.csv", "id,name\nXA,x\n", map[string]any{"max_size": 10}},
		"object 2: has no column \"id\"":          {"a.json", `[{"id":1},{"a":2}]`, nil},
		"object 2: the key \"1\" is there twice":  {"a.json", `[{"id":1},{"id":"1"}]`, nil},
		"there is more behind the list":           {"a.json", `[{"id":1}]{}`, nil},
		"at byte 9: EOF":                          {"a.json", `[{"id":1}`, nil},
		"cannot unmarshal number":                 {"a.json", `[1]`, nil},
	} {
		options := map[string]any{"table": table(t, c.name, c.text).path}
		if strings.HasSuffix(c.name, "json") {
			options["column"] = "id"
		}

		maps.Copy(options, c.options)

		if _, err := source(t, options, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	for path, want := range map[string]string{filepath.Join(t.TempDir(), "x.csv"): "no such file", t.TempDir(): "is no file"} {
		_, err := source(t, map[string]any{"table": path, "format": "csv"}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), path) != 1 {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestATableThatHasChangedIsReadAgain(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		f := table(t, "stations.csv", "id,v\nXA,1\n")
		core, logs := observer.New(zap.InfoLevel)

		s, err := source(t, map[string]any{"table": f.path, "reload": "10s"}, zap.New(core))
		if err != nil {
			t.Fatal(err)
		}

		one, _ := s.Lane()
		two, _ := s.Lane()

		for i, step := range []struct {
			wait   time.Duration
			change func()
			want   string
			logged int
		}{
			{9 * time.Second, func() { f.write(t, "id,v\nXA,2\n") }, "1", 0}, // nobody has looked
			{2 * time.Second, nil, "2", 1},
			{11 * time.Second, nil, "2", 1},                                         // nothing has changed
			{11 * time.Second, func() { f.write(t, "id,v\nXA,3,\n") }, "2", 2},      // a table that makes no sense
			{11 * time.Second, nil, "2", 2},                                         // that is told once
			{11 * time.Second, func() { _ = os.Remove(f.path) }, "2", 3},            // no table at all
			{11 * time.Second, nil, "2", 3},                                         // that is told once
			{11 * time.Second, func() { f.write(t, "v,id\n4,XA\n") }, "2", 4},       // its first column is another
			{11 * time.Second, func() { f.write(t, "id,v\nXA,5\nXB,5\n") }, "5", 5}, // and a good one
		} {
			if step.change != nil {
				step.change()
			}

			<-time.After(step.wait)

			if i == 7 {
				if got := props(t, one, "4"); got["id"] != "XA" {
					t.Errorf("step %d: %q", i, got)
				}

				continue
			}

			for _, l := range []pipeline.Transform{one, two} {
				if got := props(t, l, "XA")["v"]; got != step.want {
					t.Errorf("step %d: v is %q, want %q", i, got, step.want)
				}
			}

			if logs.Len() != step.logged {
				t.Errorf("step %d: %d lines in the log, want %d: %v", i, logs.Len(), step.logged, logs.All())
			}
		}

		meter, _ := one.(pipeline.Meter)
		if got := meter.Meter(); got["reloads"] != 3 || got["failed_reloads"] != 2 {
			t.Errorf("counted %v", got)
		}
	})
}

// All lanes work while the table is replaced again and again: each message meets one table or the other, never a mixture.
func TestLanesShareOneTableWhole(t *testing.T) {
	t.Parallel()

	rows := func(v int) string {
		var b strings.Builder
		for i := range 500 {
			fmt.Fprintf(&b, "%d,%d,%d\n", i, v, v)
		}

		return "id,a,b\n" + b.String()
	}

	f := table(t, "t.csv", rows(0))

	s, err := source(t, map[string]any{"table": f.path, "reload": "1ns"}, nil)
	if err != nil {
		t.Fatal(err)
	}

	var all sync.WaitGroup

	stop := make(chan struct{})

	for range 3 {
		l, _ := s.Lane()

		all.Go(func() {
			for i := 0; ; i++ {
				if got := props(t, l, strconv.Itoa(i%500)); got["a"] == "" || got["a"] != got["b"] {
					t.Errorf("a is %q, b is %q", got["a"], got["b"])
				}

				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}

	for v := range 50 {
		next := &file{path: f.path + ".next", age: f.age + time.Duration(v)*time.Second}
		next.write(t, rows(v))

		if err := os.Rename(next.path, f.path); err != nil {
			t.Error(err)
		}
	}

	close(stop)
	all.Wait()
}

func ExampleSource() {
	folder, err := os.MkdirTemp("", "enrich")
	if err != nil {
		fmt.Println(err)

		return
	}
	defer func() { _ = os.RemoveAll(folder) }()

	path := filepath.Join(folder, "stations.csv")
	_ = os.WriteFile(path, []byte("id,country\nXA,DE\n"), 0o600)

	var o enrich.Options
	if err := plugins.Decode(map[string]any{"table": path, "key": "key"}, &o); err != nil {
		fmt.Println(err)

		return
	}

	stations, err := enrich.New(o, nil)
	if err != nil {
		fmt.Println(err)

		return
	}

	lane, _ := stations.Lane()
	m := &pipeline.Message{Key: "XA"}

	_ = lane.Transform(nil, m, func(m *pipeline.Message) error { //nolint:staticcheck // it does not wait for anything
		fmt.Println(m.Props)

		return nil
	})
	// Output: map[country:DE]
}
