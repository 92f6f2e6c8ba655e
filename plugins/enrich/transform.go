// Package enrich is the stage that adds to messages what a table in a file knows about them.
package enrich

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/internal/value"
)

// ErrNoRow rejects a message whose key is not in the table.
var ErrNoRow = errors.New("enrich: the table has no row for it")

// Transform is one lane of a [Source].
type Transform struct {
	source *Source

	// plan puts the columns of planned into bodies; nil where they go into properties.
	plan    *document.Plan
	planned *table
	values  [][]byte
	scratch []byte // holds the values of one message

	matched, missed, reloads, failedReloads atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// Transform adds the columns of the row of m and emits it. It rejects m when its key is in a body that is no JSON, or has no row
// where that is asked for ([ErrNoRow]), and when its body has no place for the columns.
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

	if err := t.put(m, table, cells); err != nil {
		return pipeline.Reject(fmt.Errorf("enrich: %w", err))
	}

	if err := emit(m); err != nil {
		return err
	}

	t.matched.Add(1)

	return nil
}

// put puts a row where it goes.
func (t *Transform) put(m *pipeline.Message, table *table, cells row) error {
	into := t.source.options.Into

	if !into.InBody() {
		prefix := ""
		if name := into.Prop(); name != "" {
			prefix = name + "."
		}

		for i, c := range cells {
			if c.there {
				m.SetProp(prefix+table.columns[i], c.text)
			}
		}

		return nil
	}

	d, err := document.Of(m)
	if err == nil && t.planned != table {
		err = t.prepare(table)
	}

	if err != nil {
		return err
	}

	t.scratch = t.scratch[:0]
	clear(t.values)

	for i, c := range cells {
		if c.there {
			from := len(t.scratch)
			t.scratch = append(t.scratch, c.text...)
			t.values[i] = t.scratch[from:len(t.scratch):len(t.scratch)]
		}
	}

	next, err := t.plan.Apply(d, t.values)
	if err != nil {
		return err //nolint:wrapcheck // names the place
	}

	m.Body = next.Source()
	m.SetMemo(next)

	return nil
}

// prepare makes the plan for the columns of a table.
func (t *Transform) prepare(table *table) error {
	var c document.Changes

	for _, name := range table.columns {
		c.Set = append(c.Set, t.source.options.Into.Path().Member(name))
	}

	plan, err := document.NewPlan(c)
	if err != nil {
		return err //nolint:wrapcheck // names the place
	}

	t.plan, t.planned, t.values = plan, table, make([][]byte, len(table.columns))

	return nil
}

// Meter returns what this lane has found, and how often it has read the table.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"matched": t.matched.Load(), "missed": t.missed.Load(),
		"reloads": t.reloads.Load(), "failed_reloads": t.failedReloads.Load(),
	}
}
