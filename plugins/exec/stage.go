package exec

import (
	"context"
	"fmt"
	"io"

	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// Gather sends batches to a program. It belongs to one lane.
type Gather struct{ *worker }

var (
	_ pipeline.BatchTransform = (*Gather)(nil)
	_ pipeline.Opener         = (*Gather)(nil)
	_ pipeline.Meter          = (*Gather)(nil)
	_ io.Closer               = (*Gather)(nil)
)

// New returns a gather stage. The program's standard error goes to log; nil logs nothing.
func New(o Options, log *zap.Logger) (*Gather, error) {
	w, err := newWorker(o, log)
	if err != nil {
		return nil, err
	}

	return &Gather{worker: w}, nil
}

// TransformBatch emits what the program makes of the batch, frame by frame. Messages that it refuses, and those of a frame
// that it fails on, are named in a [pipeline.BatchError].
func (g *Gather) TransformBatch(ctx context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	var failures pipeline.BatchError

	for done := 0; done < len(batch); {
		for _, r := range g.send(ctx, batch[done:]) {
			if err := g.settle(r, emit); err != nil {
				return err
			}

			failures.Fail(done, r.failure())

			done++
		}
	}

	return failures.Err()
}

// settle emits the outputs of a message.
func (w *worker) settle(r result, emit pipeline.Emit) error {
	for _, out := range r.outs {
		if err := emit(out); err != nil {
			return err
		}

		w.counts.made.Add(1)
	}

	return nil
}

// failure returns why a message failed; nil when it did not.
func (r result) failure() error {
	if r.err == nil {
		return nil
	}

	return fmt.Errorf("exec: %w", r.err)
}

// Transform sends messages to a program, one by one. It belongs to one lane.
type Transform struct{ *worker }

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Opener    = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
	_ io.Closer          = (*Transform)(nil)
)

// NewTransform returns a transform, as [New] does a gather stage.
func NewTransform(o Options, log *zap.Logger) (*Transform, error) {
	w, err := newWorker(o, log)
	if err != nil {
		return nil, err
	}

	return &Transform{worker: w}, nil
}

// Transform emits what the program makes of m.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	r := t.send(ctx, []*pipeline.Message{m})[0]
	if err := t.settle(r, emit); err != nil {
		return err
	}

	return r.failure()
}
