// Package wasm runs WebAssembly modules as stages. docs/wasm.md describes how it talks to them.
package wasm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/wasm/meter"
)

// Module is what the lanes of a stage share: the compiled code, which is kept as long as anybody has the Module. It is safe
// for concurrent use.
type Module struct {
	options Options
	log     *zap.Logger
	engine  wazero.RuntimeConfig

	mu sync.Mutex // guards what is below; held while the first lane compiles
	// Both are nil until then. They are never closed, and freed with the Module.
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
}

// New returns a module that is not read yet. What it prints goes to log; nil logs nothing.
func New(o Options, log *zap.Logger) (*Module, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}

	if log == nil {
		log = zap.NewNop()
	}

	return &Module{options: withDefaults(o), log: log, engine: wazero.NewRuntimeConfig()}, nil
}

// Lanes returns the Lane of a new [Module].
func Lanes(o Options, log *zap.Logger) (func() (pipeline.Transform, error), error) {
	m, err := New(o, log)
	if err != nil {
		return nil, err
	}

	return m.Lane, nil
}

// Lane returns a transform with an instance of the module of its own. It never fails; its type is that of a
// [pipeline.Stage].New.
func (m *Module) Lane() (pipeline.Transform, error) { return &Transform{module: m}, nil }

// ready returns the compiled module. The first lane reads the file and compiles it, while the others wait.
//
//nolint:ireturn // the library's own form
func (m *Module) ready(ctx context.Context) (wazero.Runtime, wazero.CompiledModule, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.compiled != nil {
		return m.runtime, m.compiled, nil
	}

	code, err := m.options.read()
	if err != nil {
		return nil, nil, err
	}

	r := wazero.NewRuntimeWithConfig(ctx, m.engine.WithMemoryLimitPages(m.options.pages()))

	compiled, err := prepare(ctx, r, code)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close(ctx))
	}

	m.runtime, m.compiled = r, compiled

	return r, compiled, nil
}

// prepare gives a runtime all that a module can import, and compiles one for it.
//
//nolint:ireturn // the library's own form
func prepare(ctx context.Context, r wazero.Runtime, code []byte) (wazero.CompiledModule, error) {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, r); err != nil {
		return nil, fmt.Errorf("the system interface: %w", err)
	}

	if err := offer(ctx, r); err != nil {
		return nil, err
	}

	code, tick, err := metered(code)
	if err != nil {
		return nil, err
	}

	compiled, err := compile(watching(ctx, tick), r, code)
	if err != nil {
		return nil, err
	}

	return compiled, fits(compiled)
}

// metered returns a module that can be stopped, and its function that is watched.
func metered(code []byte) (metered []byte, tick uint32, err error) {
	// steps are turns of loops between two looks at the context, in which Go's scheduler and collector have to wait, too: ten
	// to a hundred microseconds; a guess.
	const steps = 10_000

	metered, tick, err = meter.Insert(code, steps)
	if err != nil {
		return nil, 0, fmt.Errorf("it is no module that can run: %w", err)
	}

	return metered, tick, nil
}

// read returns the code that the options name.
func (o *Options) read() ([]byte, error) {
	const most = 256 << 20

	if o.Code != nil {
		return o.Code, nil
	}

	file, err := os.Open(o.Module)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the file; the caller puts the place around it
	}
	defer file.Close() //nolint:errcheck // it was only read

	info, err := file.Stat()

	switch {
	case err != nil:
		return nil, err //nolint:wrapcheck // as above
	case !info.Mode().IsRegular() || info.Size() > most:
		return nil, fmt.Errorf("%s is no file of at most 256 MiB", o.Module)
	}

	code := make([]byte, info.Size())
	if _, err := io.ReadFull(file, code); err != nil {
		return nil, fmt.Errorf("read %s: %w", o.Module, err)
	}

	return code, nil
}
