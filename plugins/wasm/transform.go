package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
)

// Transform is one lane of a [Module].
type Transform struct {
	module *Module

	mu       sync.Mutex // guards what is below; held while the module works
	instance *instance
	closed   bool

	messages, made, refused, starts, failures atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Opener    = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
	_ io.Closer          = (*Transform)(nil)
)

var errClosed = errors.New("the stage is closed")

// Open compiles and starts the module, so that one that cannot run stops the job's start.
func (t *Transform) Open(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	if err := t.ready(ctx); err != nil {
		return fmt.Errorf("wasm: %s: %w", t.module.options.Module, err)
	}

	return nil
}

// ready starts an instance when there is none.
func (t *Transform) ready(ctx context.Context) error {
	switch {
	case t.closed:
		return errClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case t.instance != nil:
		return nil
	}

	t.starts.Add(1)

	in, err := start(ctx, t.module)
	if err != nil {
		t.failures.Add(1)

		return err
	}

	t.instance = in

	return nil
}

// Transform emits what the module makes of m, after the module has returned.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	outs, err := t.work(ctx, m)
	if err != nil {
		return fmt.Errorf("wasm: %w", err)
	}

	for _, out := range outs {
		if err := emit(out); err != nil {
			return err
		}

		t.made.Add(1)
	}

	return nil
}

// work gives up the instance when it fails by more than a refusal.
func (t *Transform) work(ctx context.Context, m *pipeline.Message) ([]*pipeline.Message, error) {
	if err := t.ready(ctx); err != nil {
		return nil, err
	}

	t.messages.Add(1)

	outs, err := t.instance.work(ctx, m)

	if _, ok := errors.AsType[*refusal](err); ok {
		t.refused.Add(1)
	} else if err != nil {
		t.failures.Add(1)
		t.drop(ctx)
	}

	return outs, err
}

func (t *Transform) drop(ctx context.Context) {
	if t.instance != nil {
		t.instance.close(ctx)
		t.instance = nil
	}
}

// Close frees the instance. It waits for a message that is under way, and never fails.
func (t *Transform) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.closed = true
	t.drop(context.Background())

	return nil
}

// Meter returns what the module was called with, made and refused, and how often it was started and failed.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"messages": t.messages.Load(), "made": t.made.Load(), "refused": t.refused.Load(),
		"starts": t.starts.Load(), "failures": t.failures.Load(),
	}
}
