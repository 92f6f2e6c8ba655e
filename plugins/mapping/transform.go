// Package mapping makes the parts of a message anew by expressions; as a plugin it is called map.
package mapping

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Options say what is made anew. All expressions see the message as it comes in.
type Options struct {
	// Body makes the body, as JSON. The zero value leaves it.
	Body expression.Expression `help:"What the body becomes, as JSON." option:"body,main"`
	// Raw writes a body that is a text as it is, without quotes.
	Raw bool `help:"Write a body that is a text as it is, without quotes." option:"raw"`
	// Key and Tag make the key and the tag. The zero value leaves them.
	Key expression.Expression `help:"What the key becomes." option:"key"`
	Tag expression.Expression `help:"What the tag becomes." option:"tag"`
	// Props make properties, beside those that the message has.
	Props map[string]expression.Expression `help:"Properties that the message gets; nil removes one." option:"props"`
}

// Validate refuses options that make nothing.
func (o *Options) Validate() error {
	if o.Body.IsZero() && o.Key.IsZero() && o.Tag.IsZero() && len(o.Props) == 0 {
		return errors.New("nothing is made; give body, key, tag or props")
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Makes the body, the key, the tag and properties of a message by expressions.",
		Text: "All expressions see the message as it comes in. As a key, a tag or a property, a text is taken as it is, nil is " +
			"nothing, and all else is written as JSON. A message is rejected when an expression cannot be evaluated for it. To " +
			"change a few fields of a body, json is simpler and faster.",
		Example: "map: { body: '{ id: body.id, km: body.miles * 1.609 }', key: body.id }",
		Metrics: []plugins.Metric{{Name: "mapped", Help: "Messages made anew."}},
	}
}

// Transform makes messages anew. It belongs to one lane.
type Transform struct {
	options Options
	props   []string // the names, sorted
	scope   expression.Scope
	mapped  atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("map: %w", err)
	}

	return &Transform{options: o, props: slices.Sorted(maps.Keys(o.Props))}, nil
}

// Transform emits m with what was made anew.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if err := t.remake(m); err != nil {
		return pipeline.Reject(fmt.Errorf("map: %w", err))
	}

	if err := emit(m); err != nil {
		return err
	}

	t.mapped.Add(1)

	return nil
}

// remake changes m after all expressions have been evaluated.
func (t *Transform) remake(m *pipeline.Message) error {
	t.scope.Reset(m)

	body, err := t.body(m)
	if err != nil {
		return err
	}

	key, err := t.text(t.options.Key, m.Key)
	if err != nil {
		return err
	}

	tag, err := t.text(t.options.Tag, m.Tag)
	if err != nil {
		return err
	}

	props := m.Props
	if len(t.props) > 0 {
		if props = maps.Clone(m.Props); props == nil {
			props = make(map[string]string, len(t.props))
		}
	}

	for _, name := range t.props {
		v, err := t.options.Props[name].Eval(&t.scope)
		if err != nil {
			return fmt.Errorf("props.%s: %w", name, err)
		}

		if v.IsNil() {
			delete(props, name)

			continue
		}

		if props[name], err = v.Text(); err != nil {
			return fmt.Errorf("props.%s: %w", name, err)
		}
	}

	m.Body, m.Key, m.Tag, m.Props = body, key, tag, props

	return nil
}

func (t *Transform) body(m *pipeline.Message) ([]byte, error) {
	e := t.options.Body
	if e.IsZero() {
		return m.Body, nil
	}

	v, err := e.Eval(&t.scope)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Excerpt(err), err)
	}

	if text, ok := v.Any().(string); ok && t.options.Raw {
		return []byte(text), nil
	}

	body, err := v.AppendJSON(nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Excerpt(err), err)
	}

	return body, nil
}

// text returns the value of an expression as text, or old when there is no expression.
func (t *Transform) text(e expression.Expression, old string) (string, error) {
	if e.IsZero() {
		return old, nil
	}

	v, err := e.Eval(&t.scope)
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.Excerpt(err), err)
	}

	text, err := v.Text()
	if err != nil {
		return "", fmt.Errorf("%s: %w", e.Excerpt(err), err)
	}

	return text, nil
}

// Meter returns how many messages were made anew.
func (t *Transform) Meter() map[string]int64 { return map[string]int64{"mapped": t.mapped.Load()} }
