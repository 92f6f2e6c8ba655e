// Package filter lets the messages pass that meet a condition.
package filter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Options say what passes.
type Options struct {
	// When is the condition. Required.
	When expression.Condition `help:"The condition that messages pass by, an expression." option:"when,main,required"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Lets the messages pass that meet a condition and filters the others.",
		Text: "A filtered message is done: it counts as completed, not as failed. A message is rejected when the condition " +
			"cannot be told for it, such as when it needs a body that is no JSON, or compares a number with what the message " +
			"does not have; (body.mag ?? 0) stands for 0 then.",
		Example: "filter: 'body.type == \"earthquake\" && body.mag >= 4'",
		Metrics: []plugins.Metric{
			{Name: "passed", Help: "Messages that passed."},
			{Name: "filtered", Help: "Messages that did not."},
		},
	}
}

// Transform lets messages pass. It belongs to one lane.
type Transform struct {
	when             expression.Condition
	scope            expression.Scope
	passed, filtered atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if o.When.IsZero() {
		return nil, errors.New("filter: a condition is required")
	}

	return &Transform{when: o.When}, nil
}

// Transform emits m, or does not.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	t.scope.Reset(m)

	switch pass, err := t.when.Holds(&t.scope); {
	case err != nil:
		return pipeline.Reject(fmt.Errorf("filter: %w", err))
	case !pass:
		t.filtered.Add(1)

		return nil
	}

	if err := emit(m); err != nil {
		return err
	}

	t.passed.Add(1)

	return nil
}

// Meter returns how many messages passed and how many did not.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{"passed": t.passed.Load(), "filtered": t.filtered.Load()}
}
