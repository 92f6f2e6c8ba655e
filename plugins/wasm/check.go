package wasm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/millrace/millrace/pipeline"
)

const (
	// hostModule is what a module imports our functions from; its number is the version of docs/wasm.md.
	hostModule = hostPrefix + "1"
	hostPrefix = "millrace_v"

	exportAlloc   = "millrace_alloc"
	exportProcess = "millrace_process"
	exportMemory  = "memory"
)

// i32 returns n times the only type that our functions and the module's have.
func i32(n int) []api.ValueType { return slices.Repeat([]api.ValueType{api.ValueTypeI32}, n) }

// check holds a module to docs/wasm.md without running or compiling it.
func check(ctx context.Context, code []byte, pages uint32) error {
	code, _, err := metered(code) // which also finds what the library would better not read
	if err != nil {
		return err
	}

	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(pages))
	defer r.Close(ctx) //nolint:errcheck // nothing runs in it

	compiled, err := compile(ctx, r, code)
	if err != nil {
		return err
	}

	return fits(compiled)
}

// compile has the library compile a module. Over some that are not valid the library panics.
//
//nolint:ireturn // the library's own form
func compile(ctx context.Context, r wazero.Runtime, code []byte) (compiled wazero.CompiledModule, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("it is no module that can run: %v", caught)
		}
	}()

	compiled, err = r.CompileModule(ctx, code)
	if err != nil {
		return nil, fmt.Errorf("it is no module that can run: %w", err)
	}

	return compiled, nil
}

// fits compares what a module imports and exports with what docs/wasm.md says.
func fits(m wazero.CompiledModule) error {
	for _, f := range m.ImportedFunctions() {
		from, name, _ := f.Import()
		if err := provides(from, name, f); err != nil {
			return err
		}
	}

	for name, params := range map[string]int{exportAlloc: 1, exportProcess: 2} {
		f := m.ExportedFunctions()[name]

		if f == nil {
			return fmt.Errorf("it exports no function %s; docs/wasm.md says what a module needs", name)
		}

		if !slices.Equal(f.ParamTypes(), i32(params)) || !slices.Equal(f.ResultTypes(), i32(1)) {
			return fmt.Errorf("%s must take %d i32 and return one; docs/wasm.md says what a module needs", name, params)
		}
	}

	if m.ExportedMemories()[exportMemory] == nil {
		return errors.New("it exports no memory called memory; docs/wasm.md says what a module needs")
	}

	return nil
}

// provides says why a module cannot import a function.
func provides(from, name string, f api.FunctionDefinition) error {
	switch from {
	case wasi_snapshot_preview1.ModuleName:
		return nil // what is missing there is told when the module starts
	case hostModule:
	default:
		if strings.HasPrefix(from, hostPrefix) {
			return fmt.Errorf("it is written for %s, and this is %s; build it against this one's docs/wasm.md", from, hostModule)
		}

		return fmt.Errorf("it imports %s of %s; here modules can import from %s and %s only",
			name, from, hostModule, wasi_snapshot_preview1.ModuleName)
	}

	known := functions()

	i := slices.IndexFunc(known, func(f function) bool { return f.name == name })
	if i < 0 {
		names := make([]string, len(known))
		for i, f := range known {
			names[i] = f.name
		}

		return fmt.Errorf("it imports %s of %s, which has none; %s", name, hostModule, pipeline.Suggest(name, names))
	}

	if !slices.Equal(f.ParamTypes(), i32(known[i].params)) || !slices.Equal(f.ResultTypes(), i32(known[i].results)) {
		return fmt.Errorf("it imports %s of %s with other parameters or results than docs/wasm.md says", name, hostModule)
	}

	return nil
}
