package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/sys"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// Transform is one lane of a [Module].
type Transform struct {
	module *Module

	mu       sync.Mutex // guards what is below; held while the module works
	instance *instance
	closed   bool

	messages, made, refused, instances, traps atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Opener    = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
	_ io.Closer          = (*Transform)(nil)
)

// Open compiles the module, so that one that cannot be used stops the job's start.
func (t *Transform) Open(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.ready(ctx)
}

// ready makes an instance when there is none.
func (t *Transform) ready(ctx context.Context) error {
	if t.closed {
		return errors.New("wasm: the stage is closed")
	}

	if t.instance != nil {
		return nil
	}

	in, err := instantiate(ctx, t.module)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("wasm: %s: %w", t.module.options.Module, ctx.Err())
		}

		return fmt.Errorf("wasm: %s: %w", t.module.options.Module, err)
	}

	t.instance = in
	t.instances.Add(1)

	return nil
}

// Transform emits what the module makes of m, after the module has returned.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	t.mu.Lock()
	defer t.mu.Unlock()

	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wasm: %w", err)
	}

	if err := t.ready(ctx); err != nil {
		return err
	}

	outs, err := t.instance.work(ctx, m)
	if err != nil {
		return t.failed(ctx, err)
	}

	t.messages.Add(1)

	for _, out := range outs {
		if err := emit(out); err != nil {
			return err
		}

		t.made.Add(1)
	}

	return nil
}

// failed tells a message that the module refuses from a module that is broken.
func (t *Transform) failed(ctx context.Context, err error) error {
	if refused, ok := errors.AsType[*refusal](err); ok {
		t.messages.Add(1)
		t.refused.Add(1)

		err = fmt.Errorf("wasm: %w", err)
		if refused.rejected {
			return pipeline.Reject(err)
		}

		return err
	}

	t.traps.Add(1)
	t.drop()

	if ctx.Err() != nil {
		return fmt.Errorf("wasm: the module was stopped: %w", ctx.Err())
	}

	t.module.log.Warn("the module trapped", zap.Error(err))

	// What the library says goes over several lines, with a stack of the module.
	const longest = 1 << 10
	if text := err.Error(); len(text) > longest {
		err = errors.New(text[:longest] + "…")
	}

	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		err = fmt.Errorf("the module has ended with code %d", exit.ExitCode())
	}

	return fmt.Errorf("wasm: %w", err)
}

func (t *Transform) drop() {
	if t.instance != nil {
		t.instance.close()
		t.instance = nil
	}
}

// Close frees the instance. It waits for a message that is under way, and never fails.
func (t *Transform) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.closed = true
	t.drop()

	return nil
}

// Meter returns what the module has worked at, made and refused, and how many instances there were.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"messages": t.messages.Load(), "made": t.made.Load(), "refused": t.refused.Load(),
		"instances": t.instances.Load(), "traps": t.traps.Load(),
	}
}
