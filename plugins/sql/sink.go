// Package sql is the sink that writes messages into a table of PostgreSQL.
package sql

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Sink writes messages as rows. It is safe for concurrent use.
type Sink struct {
	options   Options
	statement string
	columns   []string
	config    *pgxpool.Config
	pool      atomic.Pointer[pgxpool.Pool] // nil while the sink is not open

	rows, batches, rejected, orphans, reconnects atomic.Int64
}

var (
	_ pipeline.Sink   = (*Sink)(nil)
	_ pipeline.Opener = (*Sink)(nil)
	_ pipeline.Meter  = (*Sink)(nil)
)

// errClosed is what Write fails with before Open and after Close.
var errClosed = errors.New("sql: the sink is not open")

// New returns a sink that is not open yet.
func New(o Options) (*Sink, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sql: %w", err)
	}

	config, err := pgxpool.ParseConfig(o.DSN.Reveal())
	if err != nil {
		return nil, errors.New("sql: the dsn is none") // Validate has said so
	}

	if o.Connections == 0 {
		o.Connections = 4
	}

	config.MaxConns = o.Connections

	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "millrace"
	}

	return &Sink{options: o, statement: o.statement(), columns: o.columns(), config: config}, nil
}

// Open connects and has the server plan the statement, so that a table, a column or a key that is not there is noticed now.
func (s *Sink) Open(ctx context.Context) error {
	if s.pool.Load() != nil {
		return errors.New("sql: the sink is open already")
	}

	pool, err := pgxpool.NewWithConfig(ctx, s.config)
	if err != nil {
		return s.place(err)
	}

	if _, err := pool.Exec(ctx, "EXPLAIN "+s.statement, make([]any, len(s.columns))...); err != nil {
		pool.Close()

		return s.place(err)
	}

	s.pool.Store(pool)

	return nil
}

// Write writes a row for each message. What the table does not take fails alone, in a [*pipeline.BatchError] that rejects it,
// unless it only waits for a row of another table. Any other error means that the batch is not in the table, or that its end was
// not heard of.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	pool := s.pool.Load()
	if pool == nil {
		return errClosed
	}

	w := write{sink: s, pool: pool, rows: make([][]any, len(batch))}
	indexes := make([]int, 0, len(batch))

	for i, m := range batch {
		row, err := s.row(m)
		if err != nil {
			w.reject(i, fmt.Errorf("sql: %w", err))

			continue
		}

		w.rows[i] = row
		indexes = append(indexes, i)
	}

	w.all(ctx, indexes)

	return w.failures.Err()
}

// row returns the parameters of the statement: texts, which the server turns into the types of the columns, and nil.
func (s *Sink) row(m *pipeline.Message) ([]any, error) {
	r := value.Of(m)
	row := make([]any, len(s.columns))

	for i, column := range s.columns {
		text, ok, err := r.Lookup(s.options.Columns[column])
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column, err)
		}

		if ok {
			row[i] = text
		}
	}

	return row, nil
}

// Close disconnects. Closing twice, or what was never opened, does nothing.
func (s *Sink) Close() error {
	if pool := s.pool.Swap(nil); pool != nil {
		pool.Close()
	}

	return nil
}

// Meter returns what was written.
func (s *Sink) Meter() map[string]int64 {
	return map[string]int64{
		"rows": s.rows.Load(), "batches": s.batches.Load(), "rejected": s.rejected.Load(), "orphans": s.orphans.Load(),
		"reconnects": s.reconnects.Load(),
	}
}

// place says where an error happened. The password is in none, whatever the driver puts there.
func (s *Sink) place(err error) error {
	c := s.config.ConnConfig
	where := fmt.Sprintf("sql: %s:%d/%s, table %s", c.Host, c.Port, c.Database, s.options.Table)

	text := where + ": " + err.Error()

	if refusal, ok := errors.AsType[*pgconn.PgError](err); ok && refusal.Detail != "" {
		err = fmt.Errorf("%w; %s", err, refusal.Detail)
		text = where + ": " + err.Error()
	}

	if c.Password != "" && strings.Contains(text, c.Password) {
		return errors.New(strings.ReplaceAll(text, c.Password, "***"))
	}

	return fmt.Errorf("%s: %w", where, err)
}
