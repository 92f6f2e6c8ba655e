// Package mentions lets the messages pass that mention a text.
package mentions

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options are what a job file can set.
type Options struct {
	// Text is what a message must mention.
	Text string `help:"What a message must mention." option:"text,main,required"`
	// Field is where it must mention it.
	Field plugins.Field `default:"text" help:"Where it must mention it; text is the body." option:"field"`
}

// Validate refuses what cannot be meant. Lint tells it, with the line.
func (o *Options) Validate() error {
	if o.Text == "" {
		return errors.New("the text is empty, which every message mentions")
	}

	return nil
}

// Register adds the plugin to a registry.
func Register(r *plugins.Registry) error {
	doc := plugins.Doc{
		Summary: "Lets the messages pass that mention a text, and filters the others.",
		Example: "mentions: { text: fire, field: tag }",
		Metrics: []plugins.Metric{
			{Name: "passed", Help: "Messages that passed."},
			{Name: "filtered", Help: "Messages that did not."},
		},
	}

	return plugins.AddTransform(r, "mentions", doc, func(_ plugins.Env, o Options) (pipeline.Transform, error) {
		return &Transform{options: o}, nil
	})
}

// Transform is the stage. Each lane has one of its own, so it needs no locks; only its counts are read by others.
type Transform struct {
	options          Options
	passed, filtered atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// Transform emits m, or does not, which filters it.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if !strings.Contains(t.options.Field.Of(m), t.options.Text) {
		t.filtered.Add(1)

		return nil
	}

	if err := emit(m); err != nil {
		return err // what the stages behind say goes back as it is
	}

	t.passed.Add(1)

	return nil
}

// Meter returns the counts that the documentation names.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{"passed": t.passed.Load(), "filtered": t.filtered.Load()}
}
