// Package split makes many messages of one, by cutting its body.
package split

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/pieces"
)

// Transform cuts bodies. It belongs to one lane.
type Transform struct {
	options Options
	made    atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("split: %w", err)
	}

	if o.Most == 0 {
		o.Most = 100_000
	}

	return &Transform{options: o}, nil
}

// Transform emits the pieces of m, whose bodies are parts of its body. It counts them first, so that a message that has
// too many of them leaves none.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	all, err := t.cut(m.Body)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("split: the body %w", err))
	}

	n := 0
	for range all {
		n++
		if n > t.options.Most {
			return pipeline.Reject(fmt.Errorf("split: more than %d pieces; the option most allows more", t.options.Most))
		}
	}

	n = 0

	for piece := range all {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("split: after %d pieces: %w", n, err)
		}

		out := m.Clone()
		out.Body = piece

		if m.ID != "" {
			out.ID = m.ID + "/" + strconv.Itoa(n)
		}

		if err := emit(out); err != nil {
			return err
		}

		n++

		t.made.Add(1)
	}

	return nil
}

func (t *Transform) cut(body []byte) (iter.Seq[[]byte], error) {
	if t.options.By == Lines {
		return pieces.Lines(body), nil
	}

	return pieces.Elements(body) //nolint:wrapcheck // the caller puts the place around it
}

// Meter returns how many pieces were made.
func (t *Transform) Meter() map[string]int64 { return map[string]int64{"pieces": t.made.Load()} }
