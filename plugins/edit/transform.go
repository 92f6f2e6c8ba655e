// Package edit changes fields of JSON bodies; as a plugin it is called json.
package edit

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/expression"
)

// Transform changes bodies. It belongs to one lane.
type Transform struct {
	plan    *document.Plan
	sets    []expression.Expression
	scope   expression.Scope
	values  [][]byte
	scratch []byte // holds the values of one message
	changed atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}

	plan, sets, err := o.plan()

	return &Transform{plan: plan, sets: sets, values: make([][]byte, len(sets))}, err
}

// Transform emits m with the changed body.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	next, err := t.change(m)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("json: %w", err))
	}

	m.Body = next.Source()
	m.SetMemo(next)

	if err := emit(m); err != nil {
		return err
	}

	t.changed.Add(1)

	return nil
}

func (t *Transform) change(m *pipeline.Message) (*document.Document, error) {
	t.scope.Reset(m)

	d, err := t.scope.Body()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller names the plugin, and there is nothing else to name
	}

	const most = 64 << 10 // what is kept between messages

	if cap(t.scratch) > most {
		t.scratch = nil
	}

	t.scratch = t.scratch[:0]

	for i, set := range t.sets {
		v, err := set.Eval(&t.scope)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", set.Excerpt(err), err)
		}

		from := len(t.scratch)

		if t.scratch, err = v.AppendJSON(t.scratch); err != nil {
			return nil, fmt.Errorf("%s: %w", set.Excerpt(err), err)
		}

		t.values[i] = t.scratch[from:len(t.scratch):len(t.scratch)]
	}

	return t.plan.Apply(d, t.values) //nolint:wrapcheck // as above
}

// Meter returns how many bodies were changed.
func (t *Transform) Meter() map[string]int64 { return map[string]int64{"changed": t.changed.Load()} }
