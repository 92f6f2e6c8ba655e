package standard_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/compress"
	"github.com/millrace/millrace/plugins/pluginstest"
	"github.com/millrace/millrace/plugins/servertest"
	"github.com/millrace/millrace/plugins/standard"
	"github.com/millrace/millrace/plugins/stdout"
	"github.com/millrace/millrace/plugins/wasm/wasmtest"
)

// list returns a message whose body is a JSON array.
func list(n int) *pipeline.Message { return pluginstest.Message(n, fmt.Sprintf(`[%d,{"n":%d}]`, n, n)) }

// packed returns a message that compress has been at.
func packed(n int) *pipeline.Message {
	var body bytes.Buffer

	w := gzip.NewWriter(&body)
	_, _ = io.WriteString(w, strings.Repeat(strconv.Itoa(n), 100))
	_ = w.Close()

	m := pluginstest.Message(n, body.String())
	m.SetProp(compress.PropEncoding, "gzip")

	return m
}

// use is how a plugin is put through the suite.
type use struct {
	options any
	// with finishes the subject; may be nil.
	with func(t *testing.T, s *pluginstest.Subject)
}

func good(messages func(n int) *pipeline.Message) func(*testing.T, *pluginstest.Subject) {
	return func(_ *testing.T, s *pluginstest.Subject) { s.Good = messages }
}

// needs skips a plugin whose program is not on this machine.
func needs(program string) func(*testing.T, *pluginstest.Subject) {
	return func(t *testing.T, _ *pluginstest.Subject) {
		t.Helper()

		if _, err := exec.LookPath(program); err != nil && os.Getenv("CI") == "" {
			t.Skipf("there is no %s here", program)
		}
	}
}

func uses(t *testing.T) map[string]use {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, `{"path":%q}`, r.URL.Path)
	}))
	t.Cleanup(server.Close)

	program := map[string]any{"command": []any{"python3", "-B", "-c", "import millrace; millrace.run(lambda m: m)"}, "dir": "../exec/python"}

	return map[string]use{
		"transform compress":   {options: "zstd"},
		"transform decompress": {with: good(packed)},
		"transform dedupe":     {},
		"transform enrich":     {options: map[string]any{"table": table(t), "key": "key"}},
		"transform exec":       {options: program, with: needs("python3")},
		"transform filter":     {options: "body.n >= 0"},
		"transform http":       {options: map[string]any{"url": server.URL + "/{key}", "into": "body.answer", "cache": "1m"}},
		"transform json":       {options: map[string]any{"set": map[string]any{"a.b": "body.n + 1"}, "rename": map[string]any{"n": "m"}}},
		"transform key":        {options: "string(body.n)"},
		"transform map":        {options: "{n: body.n}"},
		"transform switch":     {options: []any{map[string]any{"when": "body.n < 0", "drop": true}, map[string]any{"tag": "t"}}},
		"transform tag":        {options: "key"},
		"transform jq":         {options: "., {a: .n}"},
		"transform log":        {},
		"transform sample":     {options: map[string]any{"share": 0.9, "by": "key"}},
		"transform split":      {with: good(list)},
		"transform throttle":   {options: 1_000_000},
		"transform unarchive":  {options: "array", with: good(list)},
		"transform wasm":       {options: module(t)},
		"gather archive":       {options: "messages"},
		"gather batch":         {options: "array"},
		"gather exec":          {options: program, with: needs("python3")},
		"sink discard":         {},
		"sink file":            {options: map[string]any{"path": filepath.Join(t.TempDir(), "{day}.jsonl")}},
		"sink http":            {options: server.URL},
		"sink redis":           {options: map[string]any{"url": servertest.StartRedis(t).URL(), "command": "xadd", "key": "messages"}},
		"sink sql":             {options: database(t)},
		"sink stdout": {with: func(_ *testing.T, s *pluginstest.Subject) {
			s.New = func(tb testing.TB) any {
				tb.Helper()

				sink, err := stdout.New(stdout.Options{}, nowhere{})
				if err != nil {
					tb.Error(err)
				}

				return sink
			}
		}},
		"sink topic": {options: "alerts"},
	}
}

// module returns the file of a module.
func module(t *testing.T) string {
	t.Helper()

	file := filepath.Join(t.TempDir(), "pass.wasm")
	if err := os.WriteFile(file, wasmtest.Pass(), 0o600); err != nil {
		t.Fatal(err)
	}

	return file
}

// table returns a file with a table of the suite's messages.
func table(t *testing.T) string {
	t.Helper()

	var text strings.Builder

	_, _ = text.WriteString("key,name\n")

	for n := range 2000 {
		_, _ = fmt.Fprintf(&text, "key-%d,name-%d\n", n, n)
	}

	path := filepath.Join(t.TempDir(), "table.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	return path
}

// database returns the options for a table in a database of its own.
func database(t *testing.T) map[string]any {
	t.Helper()

	server := servertest.StartPostgres(t)

	conn, err := pgx.Connect(t.Context(), server.DSN())
	if err != nil {
		t.Fatal(err)
	}

	_, err = conn.Exec(t.Context(), "CREATE TABLE messages (body text)")
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}

	return map[string]any{"dsn": server.DSN(), "table": "messages", "columns": map[string]any{"body": "text"}}
}

func (nowhere) Write(p []byte) (int, error) { return len(p), nil }

func TestEveryPluginPassesTheSuite(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	if err := standard.Register(&r); err != nil {
		t.Fatal(err)
	}

	table := uses(t)

	for _, d := range r.Describe() {
		name := string(d.Kind) + " " + d.Name

		u, ok := table[name]
		if !ok {
			t.Errorf("the %s is not in the table of this test; put it in, with options that work", name)

			continue
		}

		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := pluginstest.Of(t, &r, d.Kind, d.Name, u.options, plugins.Env{Publisher: nowhere{}})
			if u.with != nil {
				u.with(t, &s)
			}

			pluginstest.Test(t, s)
		})
	}
}
