// Package label gives messages their key or their tag; its plugins are key and tag.
package label

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Options say what the label is.
type Options struct {
	// Value is the label. Required.
	Value expression.Expression `help:"An expression: text as it is, nil for none, else JSON." option:"value,main,required"`
}

// KeyDoc is what the plugin key says of itself.
func KeyDoc() plugins.Doc {
	return plugins.Doc{
		Summary: "Gives messages a key.",
		Text: "A key takes effect behind the channel: in the lanes and the order of the channels that it routes to, and in " +
			"sinks. A message is rejected when the expression cannot be evaluated for it.",
		Example: "key: body.user.id",
		Metrics: metrics(),
	}
}

// TagDoc is what the plugin tag says of itself.
func TagDoc() plugins.Doc {
	return plugins.Doc{
		Summary: "Gives messages a tag.",
		Text: "Routes may ask for tags, and so may consumers of a topic. A message is rejected when the expression cannot be " +
			"evaluated for it.",
		Example: "tag: 'body.mag >= 6 ? \"major\" : \"minor\"'",
		Metrics: metrics(),
	}
}

func metrics() []plugins.Metric {
	return []plugins.Metric{{Name: "labelled", Help: "Messages that got one."}}
}

// Transform sets a label. It belongs to one lane.
type Transform struct {
	name     string
	value    expression.Expression
	set      func(m *pipeline.Message, text string)
	scope    expression.Scope
	labelled atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// NewKey returns a transform that sets keys.
func NewKey(o Options) (*Transform, error) {
	return newTransform("key", o, func(m *pipeline.Message, text string) { m.Key = text })
}

// NewTag returns a transform that sets tags.
func NewTag(o Options) (*Transform, error) {
	return newTransform("tag", o, func(m *pipeline.Message, text string) { m.Tag = text })
}

func newTransform(name string, o Options, set func(*pipeline.Message, string)) (*Transform, error) {
	if o.Value.IsZero() {
		return nil, errors.New(name + ": an expression is required")
	}

	return &Transform{name: name, value: o.Value, set: set}, nil
}

// Transform emits m with its label.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	text, err := t.text(m)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("%s: %w", t.name, err))
	}

	t.set(m, text)

	if err := emit(m); err != nil {
		return err
	}

	t.labelled.Add(1)

	return nil
}

func (t *Transform) text(m *pipeline.Message) (string, error) {
	t.scope.Reset(m)

	v, err := t.value.Eval(&t.scope)
	if err != nil {
		return "", err //nolint:wrapcheck // the caller names the plugin
	}

	return v.Text() //nolint:wrapcheck // as above
}

// Meter returns how many messages got a label.
func (t *Transform) Meter() map[string]int64 { return map[string]int64{"labelled": t.labelled.Load()} }
