package wasm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
)

// instance is a module that runs. It belongs to one goroutine, and is of no use after an error that is no [*refusal].
type instance struct {
	call

	log     *zap.Logger
	module  api.Module // nil when it could not be loaded
	memory  api.Memory
	alloc   api.Function
	process api.Function
	// buffer is where bodies are put, room how many bytes there are.
	buffer, room uint32
	stack        [2]uint64
	stdout       lineLog
	stderr       lineLog
	scope        scope
}

func start(ctx context.Context, m *Module) (*instance, error) {
	runtime, compiled, err := m.ready(ctx)
	if err != nil {
		return nil, err
	}

	in := &instance{
		call: call{options: &m.options}, log: m.log, stdout: lineLog{log: m.log}, stderr: lineLog{log: m.log},
	}
	in.scope.in = in

	ctx, cancel := context.WithTimeout(ctx, time.Duration(in.options.Start))
	defer cancel()

	if err := in.load(in.enter(ctx), runtime, compiled); err != nil {
		in.close(ctx)

		return nil, fmt.Errorf("start: %w", in.explain(ctx, err))
	}

	return in, nil
}

// load fails with what the library says.
func (in *instance) load(ctx context.Context, r wazero.Runtime, compiled wazero.CompiledModule) error {
	module, err := r.InstantiateModule(ctx, compiled, in.config())
	if err != nil {
		return err //nolint:wrapcheck // the caller explains it
	}

	in.module = module
	in.memory = in.module.Memory()
	in.alloc, in.process = in.module.ExportedFunction(exportAlloc), in.module.ExportedFunction(exportProcess)

	if begin := in.module.ExportedFunction("_initialize"); begin != nil {
		_, err = begin.Call(ctx)
	}

	return err //nolint:wrapcheck // as above
}

// enter returns the context for calls of the module, until the next one.
func (in *instance) enter(ctx context.Context) context.Context {
	in.scope.Context, in.stderr.first = ctx, "" //nolint:fatcontext // the scope holds the context of one call at a time

	return &in.scope
}

// config is what the module gets of the world: clocks, chance, and what the options grant.
func (in *instance) config() wazero.ModuleConfig { //nolint:ireturn // the library's own form
	config := wazero.NewModuleConfig().WithName("").WithStartFunctions().
		WithStdout(&in.stdout).WithStderr(&in.stderr).WithSysWalltime().WithSysNanotime().WithNanosleep(in.sleep).
		WithRandSource(rand.Reader)

	for _, name := range slices.Sorted(maps.Keys(in.options.Env)) {
		config = config.WithEnv(name, in.options.Env[name])
	}

	folders := wazero.NewFSConfig()
	for _, guest := range slices.Sorted(maps.Keys(in.options.Dirs)) {
		folders = folders.WithReadOnlyDirMount(in.options.Dirs[guest], guest)
	}

	return config.WithFSConfig(folders)
}

func (in *instance) sleep(ns int64) {
	timer := time.NewTimer(time.Duration(ns))
	defer timer.Stop()

	select {
	case <-timer.C:
	case <-in.scope.Done():
	}
}

// work has the module work at m. It returns the outputs, or a [*refusal].
func (in *instance) work(ctx context.Context, m *pipeline.Message) ([]*pipeline.Message, error) {
	if limit := int64(in.options.Memory); int64(len(m.Body)) > limit {
		err := fmt.Errorf("the body of %d bytes is larger than the module's memory; the option memory allows more", len(m.Body))

		return nil, &refusal{pipeline.Reject(err)}
	}

	ctx = in.enter(ctx)

	if err := in.put(ctx, m.Body); err != nil {
		return nil, err
	}

	in.begin(m)

	in.stack = [2]uint64{uint64(in.buffer), uint64(len(m.Body))}
	if err := in.process.CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, in.explain(ctx, err)
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
			return fmt.Errorf("%s: %w", exportAlloc, in.explain(ctx, err))
		}

		in.buffer, in.room = uint32(in.stack[0]), room
	}

	if in.buffer == 0 || !in.memory.Write(in.buffer, body) {
		return fmt.Errorf("%s returned %d, where there are no %d bytes", exportAlloc, in.buffer, in.room)
	}

	return nil
}

// explain returns what ended a call of the module: in one line, while the log gets all of them.
func (in *instance) explain(ctx context.Context, err error) error {
	in.flush()

	if ctx.Err() != nil {
		return fmt.Errorf("the module was stopped: %w", ctx.Err())
	}

	reason := firstLine(err.Error())
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		reason = fmt.Sprintf("the module has ended with code %d", exit.ExitCode())
	}

	if said := in.stderr.first; said != "" { // what most languages do before they trap
		reason += ": " + said
	}

	in.log.Warn("the module failed", zap.Error(err))

	return errors.New(reason)
}

func (in *instance) flush() {
	in.stdout.flush()
	in.stderr.flush()
}

// close frees the instance; there is nothing in it that could fail to be closed.
func (in *instance) close(ctx context.Context) {
	in.flush()

	if in.module != nil {
		_ = in.module.Close(ctx)
	}
}
