package wasm

import (
	"context"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// watch ends a module's call when its context has ended. Modules are metered, so that they come by here again and again. The
// library can do that itself (WithCloseOnContextDone), by a goroutine a call and a way out of the compiled code at each turn of
// a loop: that makes modules in Go, where every function is a loop, four to six times slower.
type watch struct{ tick uint32 }

var (
	_ experimental.FunctionListenerFactory = watch{}
	_ experimental.FunctionListener        = watch{}
)

// watching is the context to compile a module with.
func watching(ctx context.Context, tick uint32) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, watch{tick: tick})
}

// NewFunctionListener watches one function.
//
//nolint:ireturn // as it is asked for
func (w watch) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	if f.Index() != w.tick {
		return nil
	}

	return w
}

// Before is called with the context of the module's call.
func (watch) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, _ []uint64, _ experimental.StackIterator) {
	if err := ctx.Err(); err != nil {
		panic(err) //nolint:forbidigo // this ends the caller; the library makes it an error
	}
}

// After does nothing.
func (watch) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

// Abort does nothing.
func (watch) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}
