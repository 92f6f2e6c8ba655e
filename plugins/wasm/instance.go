package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/millrace/millrace/pipeline"
)

// What millrace_process returns.
const (
	codeDone     = 0
	codeFailed   = 1
	codeRejected = 2
)

// instance is a module that is loaded. It belongs to one goroutine, and is of no use after an error that is no [*refusal].
type instance struct {
	module  *Module
	runtime wazero.Runtime
	memory  api.Memory
	alloc   api.Function
	process api.Function
	// buffer is where bodies are put, room how many bytes there are.
	buffer, room uint32
	stack        [2]uint64
	stdout       lineLog
	stderr       lineLog

	call
}

// refusal is what a module says of a message that it does not take.
type refusal struct {
	text     string
	rejected bool
}

func (r *refusal) Error() string { return r.text }

func instantiate(ctx context.Context, m *Module) (*instance, error) {
	code, cache, err := m.acquire()
	if err != nil {
		return nil, err
	}

	pages := uint32((int64(m.options.Memory) + page - 1) / page)
	in := &instance{
		module: m, call: call{options: &m.options, log: m.log},
		stdout: lineLog{log: m.log}, stderr: lineLog{log: m.log},
		runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().
			WithCompilationCache(cache).WithMemoryLimitPages(pages).WithCloseOnContextDone(true)),
	}

	if err := in.load(ctx, code); err != nil {
		in.close()

		return nil, err
	}

	return in, nil
}

func (in *instance) load(ctx context.Context, code []byte) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, in.runtime); err != nil {
		return fmt.Errorf("the system interface: %w", err)
	}

	if err := in.export(ctx, in.runtime); err != nil {
		return err
	}

	compiled, err := in.runtime.CompileModule(ctx, code)
	if err != nil {
		return fmt.Errorf("compile: %w", err)
	}

	loaded, err := in.runtime.InstantiateModule(ctx, compiled, in.config())
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}

	in.memory = loaded.Memory()
	in.alloc, in.process = loaded.ExportedFunction("millrace_alloc"), loaded.ExportedFunction("millrace_process")

	for name, f := range map[string]api.Function{"millrace_alloc": in.alloc, "millrace_process": in.process} {
		if err := hasShape(name, f); err != nil {
			return err
		}
	}

	if in.memory == nil {
		return errors.New("the module exports no memory")
	}

	return nil
}

// hasShape holds the exports to docs/wasm.md: alloc takes one number, process two, and both return one.
func hasShape(name string, f api.Function) error {
	params := map[string]int{"millrace_alloc": 1, "millrace_process": 2}[name]

	if f == nil {
		return fmt.Errorf("the module exports no function %s; docs/wasm.md says what it needs", name)
	}

	types := append(f.Definition().ParamTypes(), f.Definition().ResultTypes()...)
	if len(f.Definition().ParamTypes()) != params || len(f.Definition().ResultTypes()) != 1 {
		return fmt.Errorf("%s has other parameters than docs/wasm.md says", name)
	}

	for _, t := range types {
		if t != api.ValueTypeI32 {
			return fmt.Errorf("%s has other types than docs/wasm.md says", name)
		}
	}

	return nil
}

func (in *instance) config() wazero.ModuleConfig {
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize").
		WithStdout(&in.stdout).WithStderr(&in.stderr).
		WithSysWalltime().WithSysNanotime().WithRandSource(rand.Reader)

	for name, value := range in.options.Env {
		config = config.WithEnv(name, value)
	}

	folders := wazero.NewFSConfig()
	for guest, host := range in.options.Dirs {
		folders = folders.WithReadOnlyDirMount(host, guest)
	}

	return config.WithFSConfig(folders)
}

// work has the module work at m. It returns the outputs, or a [*refusal].
func (in *instance) work(ctx context.Context, m *pipeline.Message) ([]*pipeline.Message, error) {
	if int64(len(m.Body)) > math.MaxInt32 {
		return nil, &refusal{text: "the body is larger than 2 GiB", rejected: true}
	}

	if err := in.put(ctx, m.Body); err != nil {
		return nil, err
	}

	in.begin(m)

	in.stack = [2]uint64{uint64(in.buffer), uint64(len(m.Body))}
	if err := in.process.CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, err //nolint:wrapcheck // the caller puts the place around it
	}

	in.flush()

	return in.end(uint32(in.stack[0]))
}

// put writes a body into the module's memory, and asks for a larger place when it does not fit.
func (in *instance) put(ctx context.Context, body []byte) error {
	const least = 4 << 10

	if need := uint32(len(body)); need > in.room || in.room == 0 {
		room := max(need, least)
		in.stack[0] = uint64(room)

		if err := in.alloc.CallWithStack(ctx, in.stack[:]); err != nil {
			return fmt.Errorf("millrace_alloc: %w", err)
		}

		in.buffer, in.room = uint32(in.stack[0]), room
	}

	if !in.memory.Write(in.buffer, body) {
		return fmt.Errorf("millrace_alloc returned a place for %d bytes that is not in the memory", in.room)
	}

	return nil
}

func (in *instance) flush() {
	in.stdout.flush()
	in.stderr.flush()
}

// close frees the instance; there is nothing in it that could fail to be closed.
func (in *instance) close() {
	ctx := context.Background()

	in.flush()
	_ = in.runtime.Close(ctx)
	in.module.release(ctx)
}
