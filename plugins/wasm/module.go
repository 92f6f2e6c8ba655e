// Package wasm runs WebAssembly modules as stages. docs/wasm.md describes how it talks to them.
package wasm

import (
	"context"
	"fmt"
	"os"
	"sync"

	"github.com/tetratelabs/wazero"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// Module is what the lanes of a stage share: the compiled code. It is safe for concurrent use.
type Module struct {
	options Options
	log     *zap.Logger

	mu    sync.Mutex // guards what is below; held while the first lane compiles
	code  []byte
	users int
	cache wazero.CompilationCache
}

// New returns a module that is not read yet. What it prints goes to log; nil logs nothing.
func New(o Options, log *zap.Logger) (*Module, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("wasm: %w", err)
	}

	if log == nil {
		log = zap.NewNop()
	}

	return &Module{options: withDefaults(o), log: log}, nil
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

// acquire returns the module's code and the cache in which it is compiled.
func (m *Module) acquire() ([]byte, wazero.CompilationCache, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.users == 0 {
		m.code = m.options.Code

		if m.code == nil {
			code, err := os.ReadFile(m.options.Module)
			if err != nil {
				return nil, nil, err //nolint:wrapcheck // it names the file; the caller puts the place around it
			}

			m.code = code
		}

		m.cache = wazero.NewCompilationCache()
	}

	m.users++

	return m.code, m.cache, nil
}

// release frees the compiled code with its last user.
func (m *Module) release(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.users--; m.users == 0 {
		_ = m.cache.Close(ctx) // of memory; it has no errors
		m.code, m.cache = nil, nil
	}
}
