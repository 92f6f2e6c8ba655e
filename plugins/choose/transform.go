// Package choose does to a message what the first case says that it meets; as a plugin it is called switch.
package choose

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Options are the cases.
type Options struct {
	// Cases are tried in order, and the first that a message meets is its only one. Required.
	Cases []Case `help:"The cases; the first that a message meets is its only one." option:"cases,main,required"`
}

// Case is a condition, and what happens to the messages that meet it.
type Case struct {
	// When is the condition. The zero value holds for all messages.
	When expression.Condition `help:"The condition, an expression; without it all messages meet it." option:"when"`
	// Tag, Key and Props are what the message gets. The zero values leave what it has.
	Tag   string            `help:"The tag that the message gets."        option:"tag"`
	Key   string            `help:"The key that the message gets."        option:"key"`
	Props map[string]string `help:"The properties that the message gets." option:"props"`
	// Drop filters the message.
	Drop bool `help:"Filter the message: it is done." option:"drop"`
	// Reject fails the message for good, for this reason. Empty does not.
	Reject string `help:"Reject the message, for this reason: it becomes a dead letter." option:"reject"`
}

// Validate refuses a list without cases, and cases that nothing can meet or that say two things.
func (o *Options) Validate() error {
	if len(o.Cases) == 0 {
		return errors.New("there are no cases")
	}

	var mistakes []plugins.Mistake

	for i, c := range o.Cases {
		path := fmt.Sprintf("cases[%d]", i)

		if c.When.IsZero() && i < len(o.Cases)-1 {
			mistakes = append(mistakes, plugins.Mistake{
				Path: path, Problem: "every message meets it, so none gets to those behind; give it a when, or make it the last",
			})
		}

		gives := c.Tag != "" || c.Key != "" || len(c.Props) > 0
		if ends := c.Drop || c.Reject != ""; c.Drop && c.Reject != "" || ends && gives {
			mistakes = append(mistakes, plugins.Mistake{
				Path: path, Problem: "a message is dropped, rejected, or given something; choose one",
			})
		}
	}

	if len(mistakes) > 0 {
		return &plugins.OptionsError{Mistakes: mistakes}
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Labels, drops or rejects a message as the first case says that it meets.",
		Text: "A message that meets none passes as it is, and so does one whose case says nothing. To do different work on " +
			"different messages, give them tags here and route them to channels of their own. A message is rejected when a " +
			"condition cannot be told for it.",
		Example: "switch: [ { when: body.mag == nil, reject: no mag }, { when: body.mag < 1, drop: true }, { tag: quake } ]",
		Metrics: []plugins.Metric{
			{Name: "met", Help: "Messages that passed by a case."},
			{Name: "unmet", Help: "Messages that met none."},
			{Name: "dropped", Help: "Messages that were filtered."},
		},
	}
}

// Transform applies cases. It belongs to one lane.
type Transform struct {
	cases               []Case
	scope               expression.Scope
	met, unmet, dropped atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("switch: %w", err)
	}

	return &Transform{cases: o.Cases}, nil
}

// Transform does what the first case says that m meets.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	t.scope.Reset(m)

	c, err := t.choose()
	count := &t.met

	switch {
	case err != nil:
		return pipeline.Reject(fmt.Errorf("switch: %w", err))
	case c == nil:
		count = &t.unmet
	case c.Drop:
		t.dropped.Add(1)

		return nil
	case c.Reject != "":
		return pipeline.Reject(fmt.Errorf("switch: %s", c.Reject))
	default:
		c.label(m)
	}

	if err := emit(m); err != nil {
		return err
	}

	count.Add(1)

	return nil
}

// choose returns the case of the message; nil for none.
func (t *Transform) choose() (*Case, error) {
	for i := range t.cases {
		c := &t.cases[i]
		if c.When.IsZero() {
			return c, nil
		}

		holds, err := c.When.Holds(&t.scope)
		if err != nil {
			return nil, fmt.Errorf("cases[%d]: %w", i, err)
		}

		if holds {
			return c, nil
		}
	}

	return nil, nil //nolint:nilnil // as said above
}

func (c *Case) label(m *pipeline.Message) {
	if c.Tag != "" {
		m.Tag = c.Tag
	}

	if c.Key != "" {
		m.Key = c.Key
	}

	for name, value := range c.Props {
		m.SetProp(name, value)
	}
}

// Meter returns how many messages met a case, met none, and were dropped.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{"met": t.met.Load(), "unmet": t.unmet.Load(), "dropped": t.dropped.Load()}
}
