// Package jq makes messages of JSON bodies by programs in the language of jq.
package jq

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"

	"github.com/itchyny/gojq"

	"github.com/millrace/millrace/pipeline"
)

// Transform runs a program. It belongs to one lane.
type Transform struct {
	options           Options
	results, filtered atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("jq: %w", err)
	}

	if o.Query.code == nil {
		return nil, errors.New("jq: a query is required")
	}

	if o.Most == 0 {
		o.Most = 10_000
	}

	return &Transform{options: o}, nil
}

// Transform emits what the program makes of m, after the program has ended well.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	input, err := decode(m.Body)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("jq: the body is no JSON: %w", err))
	}

	bodies, err := t.run(ctx, input, m)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("jq: the program runs still: %w", ctx.Err())
		}

		return pipeline.Reject(fmt.Errorf("jq: %w", err))
	}

	for i, body := range bodies {
		out := m.Clone()
		out.Body = body

		if len(bodies) > 1 && m.ID != "" {
			out.ID = m.ID + "/" + strconv.Itoa(i)
		}

		if err := emit(out); err != nil {
			return err
		}
	}

	t.results.Add(int64(len(bodies)))

	if len(bodies) == 0 {
		t.filtered.Add(1)
	}

	return nil
}

func (t *Transform) run(ctx context.Context, input any, m *pipeline.Message) ([][]byte, error) {
	props := make(map[string]any, len(m.Props))
	for name, value := range m.Props {
		props[name] = value
	}

	results := t.options.Query.code.RunWithContext(ctx, input, m.ID, m.Key, m.Tag, m.Topic, props)

	var bodies [][]byte

	for {
		v, more := results.Next()
		if !more {
			return bodies, nil
		}

		if err, failed := v.(error); failed {
			if halt, ok := errors.AsType[*gojq.HaltError](err); ok && halt.Value() == nil {
				return bodies, nil
			}

			return nil, err
		}

		if len(bodies) == t.options.Most {
			return nil, fmt.Errorf("the program has more than %d results; the option most allows more", t.options.Most)
		}

		body, err := t.encode(v)
		if err != nil {
			return nil, err
		}

		bodies = append(bodies, body)
	}
}

func (t *Transform) encode(v any) ([]byte, error) {
	if text, ok := v.(string); ok && t.options.Raw {
		return []byte(text), nil
	}

	body, err := gojq.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("a result as JSON: %w", err)
	}

	return body, nil
}

// decode reads one JSON value, and numbers as they are written.
func decode(body []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()

	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err //nolint:wrapcheck // the caller puts the place around it
	}

	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the value")
	}

	return v, nil
}

// Meter returns how many messages were made and filtered.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{"results": t.results.Load(), "filtered": t.filtered.Load()}
}
