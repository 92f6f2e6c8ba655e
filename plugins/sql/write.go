package sql

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/millrace/millrace/pipeline"
)

// rounds is how often a batch is tried again without the row that failed, before the rest goes row by row; a guess at where
// that gets cheaper.
const rounds = 8

// write is one call of Write.
type write struct {
	sink *Sink
	pool *pgxpool.Pool
	// rows are the parameters of each message; nil for what has failed already.
	rows     [][]any
	failures pipeline.BatchError
}

// all writes rows in one transaction. While one of them is not taken it is left out; when that goes on, row by row.
func (w *write) all(ctx context.Context, indexes []int) {
	for range rounds {
		if len(indexes) == 0 {
			return
		}

		at, err := w.transaction(ctx, indexes)

		switch {
		case err == nil:
			return
		case !isData(err):
			w.fail(indexes, err)

			return
		case at < 0:
			w.oneByOne(ctx, indexes)

			return
		}

		w.refuse(indexes[at], err)
		indexes = slices.Delete(slices.Clone(indexes), at, at+1)
	}

	w.oneByOne(ctx, indexes)
}

// oneByOne writes each row in a transaction of its own.
func (w *write) oneByOne(ctx context.Context, indexes []int) {
	for n, i := range indexes {
		_, err := w.transaction(ctx, indexes[n:n+1])

		switch {
		case err == nil:
		case isData(err):
			w.refuse(i, err)
		default:
			w.fail(indexes[n:], err)

			return
		}
	}
}

// transaction writes rows, all or none of them. At says which of them is at fault, -1 for nobody knows.
func (w *write) transaction(ctx context.Context, indexes []int) (at int, err error) {
	w.sink.batches.Add(1)

	batch := &pgx.Batch{}
	for _, i := range indexes {
		batch.Queue(w.sink.statement, w.rows[i]...)
	}

	results := w.pool.SendBatch(ctx, batch)
	at = -1

	for n := range indexes {
		if _, err = results.Exec(); err != nil {
			at = n

			break
		}
	}

	if closed := results.Close(); err == nil { // what a transaction finds out at its end only
		err = closed
	}

	if err == nil {
		w.sink.rows.Add(int64(len(indexes)))
	}

	return at, err
}

// refuse fails a row that the table does not take: for good, unless the row that it refers to may still come.
func (w *write) refuse(i int, err error) {
	if isOrphan(err) && w.sink.options.Parent == ParentRetry {
		w.sink.orphans.Add(1)
		w.failures.Fail(i, w.sink.place(err))

		return
	}

	w.reject(i, w.sink.place(err))
}

func (w *write) reject(i int, err error) {
	w.sink.rejected.Add(1)
	w.failures.Fail(i, pipeline.Reject(err))
}

// fail fails what may come out better another time, and gives up connections that were lost.
func (w *write) fail(indexes []int, err error) {
	if isLost(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		w.pool.Reset()
		w.sink.reconnects.Add(1)
	}

	err = w.sink.place(err)

	for _, i := range indexes {
		w.failures.Fail(i, err)
	}
}

// isData reports whether a row is at fault: its values, a constraint, or a trigger that refuses it.
func isData(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || len(refusal.Code) != 5 {
		return false
	}

	switch refusal.Code[:2] {
	case "22", // data exception
		"23", // integrity constraint violation
		"44", // with check option violation
		"54", // program limit exceeded, such as a value too large for an index
		"P0": // raised by a function
		return true
	default:
		return false
	}
}

// isOrphan reports whether a row refers to one that is not there.
func isOrphan(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)

	return ok && refusal.Code == "23503"
}

// isLost reports whether an error tells of the connection rather than of what was asked over it.
func isLost(err error) bool {
	refusal, ok := errors.AsType[*pgconn.PgError](err)

	return !ok || refusal.Code[:2] == "57" // the server stops
}
