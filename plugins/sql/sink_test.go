package sql_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/servertest"
	"github.com/millrace/millrace/plugins/sql"
)

// One server serves them all: it takes a second to start.
func TestPostgreSQL(t *testing.T) {
	t.Parallel()

	w := &world{server: servertest.StartPostgres(t)}

	for name, test := range map[string]func(*testing.T, *world){
		"is a sink":                           testSuite,
		"turns values into columns":           testColumns,
		"updates, ignores and refuses":        testConflicts,
		"rejects the bad rows of many":        testManyBadRows,
		"rejects what only the commit finds":  testDeferred,
		"retries what is nobody's fault":      testLocked,
		"waits for rows of other tables":      testOrphans,
		"fails what it has not come to":       testBusy,
		"notices wrong tables when it opens":  testOpen,
		"tells no password":                   testSecret,
		"writes names that need to be quoted": testQuoting,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, w)
		})
	}
}

func testSuite(t *testing.T, w *world) {
	t.Helper()

	pipelinetest.TestSink(t, pipelinetest.Harness{
		New: func(tb testing.TB) (pipeline.Sink, func() []string) {
			tb.Helper()

			table := w.table(tb, "body text CHECK (body <> '\"poison\"')")
			sink := w.make(tb, map[string]any{"table": table, "columns": map[string]any{"body": "text"}})

			return sink, func() []string { return w.query(tb, "SELECT body FROM "+table) }
		},
		Poison: func(m *pipeline.Message) { m.Body = []byte(`"poison"`) },
	})
}

func testColumns(t *testing.T, w *world) {
	t.Helper()

	table := w.table(t, "id text, n bigint, f double precision, b boolean, at timestamptz, j jsonb, none text, d numeric, born date")
	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{
		"id": "key", "n": "body.n", "f": "body.f", "b": "body.b", "at": "body.at", "j": "body.j", "none": "body.none", "d": "body.d",
		"born": "day",
	}})

	m := pipelinetest.Message(`{"n":9007199254740993,"f":1.5e3,"b":true,"at":"2026-01-02T03:04:05Z","j":{"a":[1,"x"]},"none":null,"d":0.10}`)
	m.Key, m.Born = "k'; DROP TABLE x", m.Born.AddDate(0, 0, 0)

	if err := sink.Write(t.Context(), []*pipeline.Message{m}); err != nil {
		t.Fatal(err)
	}

	got := w.query(t, "SELECT concat_ws('|', id, n, f, b, at AT TIME ZONE 'UTC', j, none IS NULL, d) FROM "+table)
	if want := []string{`k'; DROP TABLE x|9007199254740993|1500|t|2026-01-02 03:04:05|{"a": [1, "x"]}|t|0.10`}; !slices.Equal(got, want) {
		t.Errorf("the row is %q, want %q", got, want)
	}

	err := sink.Write(t.Context(), pipelinetest.Messages("{", `{"n":"many"}`, `{"n":1.5}`, `{"n":7}`))

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok || len(failures.Failed) != 3 {
		t.Fatalf("the error is %v", err)
	}

	for i, want := range []string{"the body is no JSON", `invalid input syntax for type bigint: "many"`, `bigint: "1.5"`} {
		if err := failures.Failed[i]; !pipeline.IsRejected(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("message %d: %v, want a rejection for %s", i, err, want)
		}
	}

	if got := sink.Meter(); got["rows"] != 2 || got["rejected"] != 3 || got["batches"] != 4 {
		t.Errorf("counted %v", got)
	}
}

func testConflicts(t *testing.T, w *world) {
	t.Helper()

	for _, c := range []struct {
		key      []any
		conflict string
		want     []string
		rejected int64
	}{
		{[]any{"id"}, "auto", []string{"1:b", "2:c"}, 0},
		{[]any{"id"}, "update", []string{"1:b", "2:c"}, 0},
		{[]any{"id"}, "ignore", []string{"1:a", "2:c"}, 0},
		{[]any{"id"}, "fail", []string{"1:a", "2:c"}, 1},
		{nil, "auto", []string{"1:a", "2:c"}, 1},
		{[]any{"id", "v"}, "auto", nil, 0},
	} {
		table := w.table(t, "id bigint PRIMARY KEY, v text, UNIQUE (id, v)")
		sink := w.open(t, map[string]any{
			"table": table, "key": c.key, "conflict": c.conflict, "columns": map[string]any{"id": "body.id", "v": "body.v"},
		})

		if c.key == nil {
			sink = w.open(t, map[string]any{"table": table, "columns": map[string]any{"id": "body.id", "v": "body.v"}})
		}

		if len(c.key) == 2 {
			if err := sink.Write(t.Context(), pipelinetest.Messages(`{"id":1,"v":"a"}`, `{"id":1,"v":"a"}`)); err != nil {
				t.Errorf("a row of nothing but its key: %v", err)
			}

			continue
		}

		err := sink.Write(t.Context(), pipelinetest.Messages(`{"id":1,"v":"a"}`, `{"id":1,"v":"b"}`, `{"id":2,"v":"c"}`))
		if (err != nil) != (c.rejected > 0) || sink.Meter()["rejected"] != c.rejected {
			t.Errorf("%v %s: %v, counted %v", c.key, c.conflict, err, sink.Meter())
		}

		if c.rejected > 0 && !strings.Contains(err.Error(), "Key (id)=(1) already exists") {
			t.Errorf("%v %s: %v does not say which", c.key, c.conflict, err)
		}

		if got := w.query(t, "SELECT id||':'||v FROM "+table+" ORDER BY 1"); !slices.Equal(got, c.want) {
			t.Errorf("%v %s: %q, want %q", c.key, c.conflict, got, c.want)
		}
	}
}

func testManyBadRows(t *testing.T, w *world) {
	t.Helper()

	const n = 60

	table := w.table(t, "n bigint CHECK (n % 3 <> 0)")
	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"n": "body"}})

	batch := make([]*pipeline.Message, n)
	for i := range batch {
		batch[i] = pipelinetest.Message(strconv.Itoa(i))
	}

	failures, ok := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), batch))
	if !ok || len(failures.Failed) != n/3 {
		t.Fatalf("%d failures, want %d", len(failures.Failed), n/3)
	}

	for i := range batch {
		if bad := i%3 == 0; pipeline.IsRejected(failures.Failed[i]) != bad {
			t.Errorf("message %d: %v", i, failures.Failed[i])
		}
	}

	if got := w.query(t, "SELECT count(*)||'' FROM "+table); got[0] != strconv.Itoa(n*2/3) {
		t.Errorf("%s rows, want %d", got, n*2/3)
	}

	if got := sink.Meter()["batches"]; got > n {
		t.Errorf("%d transactions for %d rows", got, n)
	}
}

func testDeferred(t *testing.T, w *world) {
	t.Helper()

	table := w.table(t, "n bigint UNIQUE DEFERRABLE INITIALLY DEFERRED")
	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"n": "body"}})

	failures, ok := errors.AsType[*pipeline.BatchError](sink.Write(t.Context(), pipelinetest.Messages("1", "2", "1")))
	if !ok || len(failures.Failed) != 1 || !pipeline.IsRejected(failures.Failed[2]) {
		t.Errorf("the error is %v, want one that rejects the second 1", failures)
	}
}

func testLocked(t *testing.T, w *world) {
	t.Helper()

	table := w.table(t, "n bigint")
	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"n": "body"}})

	w.query(t, "DROP TABLE "+table)

	err := sink.Write(t.Context(), pipelinetest.Messages("1", "2"))
	if err == nil || pipeline.IsRejected(err) || !strings.Contains(err.Error(), "does not exist") {
		t.Errorf("the error is %v, want one to try again", err)
	}

	w.query(t, "CREATE TABLE "+table+" (n bigint)")

	if err := sink.Write(t.Context(), pipelinetest.Messages("1", "2")); err != nil {
		t.Errorf("the table is back: %v", err)
	}
}

func testOpen(t *testing.T, w *world) {
	t.Helper()

	table := w.table(t, "n bigint")

	for want, options := range map[string]map[string]any{
		`relation "nowhere" does not exist`: {"table": "nowhere", "columns": map[string]any{"n": "body"}},
		`column "m" of relation`:            {"table": table, "columns": map[string]any{"m": "body"}},
		"no unique or exclusion constraint": {"table": "public." + table, "columns": map[string]any{"n": "body"}, "key": []any{"n"}},
		"password authentication failed": {
			"table": table, "columns": map[string]any{"n": "body"}, "dsn": strings.Replace(w.server.DSN(), "s3cret", "hush-hush", 1),
		},
		"connection refused": {"table": table, "columns": map[string]any{"n": "body"}, "dsn": "postgres://me:hush-hush@127.0.0.1:1/x"},
	} {
		err := w.make(t, options).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush-hush") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"n": "body"}})
	if err := sink.Open(t.Context()); err == nil {
		t.Error("opening twice is no error")
	}

	_ = sink.Close()

	if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err == nil {
		t.Error("a closed sink writes")
	}
}

func testSecret(t *testing.T, w *world) {
	t.Helper()

	secret := w.server.Password
	table := w.table(t, "v text CHECK (v = '')")
	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"v": "text"}})

	// The server tells of the row that it refuses; whoever sends the password as one gets it back.
	err := sink.Write(t.Context(), pipelinetest.Messages(secret))
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("the error is %v", err)
	}
}

func testQuoting(t *testing.T, w *world) {
	t.Helper()

	w.query(t, `CREATE SCHEMA "odd ""one"`)
	w.query(t, `CREATE TABLE "odd ""one"."Select" ("a ""b" text PRIMARY KEY, "order" text)`)

	sink := w.open(t, map[string]any{
		"table": `odd "one.Select`, "key": []any{`a "b`}, "columns": map[string]any{`a "b`: "key", "order": "text"},
	})

	if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err != nil {
		t.Error(err)
	}
}

func TestALostServerIsFoundAgain(t *testing.T) {
	t.Parallel()

	w := &world{server: servertest.StartPostgres(t)}
	table := w.table(t, "n bigint")
	sink := w.open(t, map[string]any{"table": table, "columns": map[string]any{"n": "body"}})

	for n, end := range []func(testing.TB){w.server.Kill, w.server.Stop} {
		if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err != nil {
			t.Fatal(err)
		}

		end(t)

		if err := sink.Write(t.Context(), pipelinetest.Messages("2")); err == nil || pipeline.IsRejected(err) {
			t.Errorf("without a server: %v", err)
		}

		w.server.Start(t)

		if err := sink.Write(t.Context(), pipelinetest.Messages("3")); err != nil {
			t.Errorf("with the server back: %v", err)
		}

		if got := sink.Meter()["reconnects"]; got != int64(n+1) {
			t.Errorf("%d reconnects counted, want %d", got, n+1)
		}
	}

	if got := w.query(t, "SELECT n||'' FROM "+table+" ORDER BY n"); !slices.Equal(got, []string{"1", "1", "3", "3"}) {
		t.Errorf("the table has %q", got)
	}
}

func TestConnectionsThatAreLostTogetherAreGivenUpTogether(t *testing.T) {
	t.Parallel()

	w := &world{server: servertest.StartPostgres(t)}
	slow := w.table(t, "n bigint, slept text DEFAULT pg_sleep(0.3)::text")
	sink := w.open(t, map[string]any{"table": slow, "columns": map[string]any{"n": "body"}})

	var lanes sync.WaitGroup
	for range 3 { // beside each other, and so through connections of their own
		lanes.Go(func() {
			if err := sink.Write(t.Context(), pipelinetest.Messages("1")); err != nil {
				t.Error(err)
			}
		})
	}

	lanes.Wait()
	w.query(t, "SELECT pg_terminate_backend(pid)||'' FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

	if err := sink.Write(t.Context(), pipelinetest.Messages("2")); err == nil || pipeline.IsRejected(err) {
		t.Errorf("over a connection that is lost: %v", err)
	}

	if err := sink.Write(t.Context(), pipelinetest.Messages("3")); err != nil {
		t.Errorf("after the first that was lost, another is tried: %v", err)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()

	good := map[string]any{"dsn": "postgres://me:hush@localhost/x", "table": "t", "columns": map[string]any{"n": "body.n"}}

	for want, change := range map[string]map[string]any{
		"dsn: is none; it looks like":                        {"dsn": "postgres://me:hush@local host/"},
		`key: "id" is not among the columns: n`:              {"key": []any{"id"}},
		"conflict: needs a key":                              {"conflict": "update"},
		`conflict: "merge" is none of auto, update`:          {"conflict": "merge"},
		"columns: a row needs one at least":                  {"columns": map[string]any{}},
		`columns.n: unknown name "mag"`:                      {"columns": map[string]any{"n": "mag"}},
		"connections: is negative":                           {"connections": -1},
		`missing_parent: "wait" is neither retry nor reject`: {"missing_parent": "wait"},
		"table: is the number 5, should be text":             {"table": 5},
		"dsn: is a table, should be a single value":          {"dsn": map[string]any{"password": "hush"}},
		`columns: is the text "body", should be a table of`:  {"columns": "body"},
	} {
		options := maps.Clone(good)
		maps.Copy(options, change)

		err := plugins.Decode(options, &sql.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := sql.New(sql.Options{}); err == nil {
		t.Error("no options are no error")
	}
}

func ExampleSink() {
	var o sql.Options

	err := plugins.Decode(map[string]any{
		"dsn": "postgres://miller:s3cret@localhost/quakes", "table": "quakes", "key": []any{"id"},
		"columns": map[string]any{"id": "key", "mag": "body.mag"},
	}, &o)
	if err != nil {
		fmt.Println(err)

		return
	}

	// A job opens, calls and closes the sink of a channel itself; this one does not connect.
	quakes, err := sql.New(o)
	fmt.Println(quakes.Meter(), err)
	// Output: map[batches:0 orphans:0 reconnects:0 rejected:0 rows:0] <nil>
}
