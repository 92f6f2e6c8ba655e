package sql_test

import (
	"context"
	"maps"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/servertest"
	"github.com/millrace/millrace/plugins/sql"
)

// world is a server, and a connection of the test's own.
type world struct {
	server *servertest.Postgres
	tables atomic.Int64
}

func (w *world) query(tb testing.TB, text string) []string {
	tb.Helper()

	conn, err := pgx.Connect(context.WithoutCancel(tb.Context()), w.server.DSN())
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(tb.Context())) }()

	rows, err := conn.Query(context.WithoutCancel(tb.Context()), text)
	if err != nil {
		tb.Fatal(err)
	}

	all, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatal(err)
	}

	return all
}

// table makes a table and returns its name.
func (w *world) table(tb testing.TB, columns string) string {
	tb.Helper()

	name := "t" + strconv.FormatInt(w.tables.Add(1), 10)
	w.query(tb, "CREATE TABLE "+name+" ("+columns+")")

	return name
}

func (w *world) make(tb testing.TB, options map[string]any) *sql.Sink {
	tb.Helper()

	all := map[string]any{"dsn": w.server.DSN()}
	maps.Copy(all, options)

	var o sql.Options
	if err := plugins.Decode(all, &o); err != nil {
		tb.Fatal(err)
	}

	sink, err := sql.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() { _ = sink.Close() })

	return sink
}

func (w *world) open(tb testing.TB, options map[string]any) *sql.Sink {
	tb.Helper()

	sink := w.make(tb, options)
	if err := sink.Open(tb.Context()); err != nil {
		tb.Fatal(err)
	}

	return sink
}
