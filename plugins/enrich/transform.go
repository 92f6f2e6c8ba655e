// Package enrich is the stage that adds to messages what a table in a file knows about them.
package enrich

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/value"
)

// ErrNoRow rejects a message whose key is not in the table.
var ErrNoRow = errors.New("enrich: the table has no row for it")

// Transform is one lane of a [Source].
type Transform struct {
	source *Source

	matched, missed, reloads, failedReloads atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// Transform adds the columns of the row of m and emits it. It rejects m when its key is in a body that is no JSON, or has no row
// where that is asked for ([ErrNoRow]).
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	switch reloaded, err := t.source.refresh(); {
	case err != nil: // it is logged, and the old table is good enough
		t.failedReloads.Add(1)
	case reloaded:
		t.reloads.Add(1)
	}

	o := &t.source.options

	key, err := value.Of(m).Text(o.Key)
	if err != nil && !errors.Is(err, value.ErrMissing) {
		return pipeline.Reject(fmt.Errorf("enrich: %w", err))
	}

	table := t.source.table.Load()

	cells, ok := table.rows[key]
	if !ok || err != nil {
		t.missed.Add(1)

		switch o.Missing {
		case MissingReject:
			return pipeline.Reject(fmt.Errorf("%w: %s is %.100q", ErrNoRow, o.Key, key))
		case MissingDrop:
			return nil
		case MissingPass:
		}

		return emit(m)
	}

	for i, c := range cells {
		if c.there {
			m.SetProp(o.Into.prefix+table.columns[i], c.text)
		}
	}

	if err := emit(m); err != nil {
		return err
	}

	t.matched.Add(1)

	return nil
}

// Meter returns what this lane has found, and how often it has read the table.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"matched": t.matched.Load(), "missed": t.missed.Load(),
		"reloads": t.reloads.Load(), "failed_reloads": t.failedReloads.Load(),
	}
}
