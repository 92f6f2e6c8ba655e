package wasm

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/wasm/wasmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// built is a Go module that is built once for all tests, and compiled once.
type built struct {
	code []byte
	err  error
}

//nolint:gochecknoglobals // what is shared takes seconds
var (
	modes   = sync.OnceValue(func() built { return build("./testdata/modes") })
	example = sync.OnceValue(func() built { return build("./example") })
	shared  = sync.OnceValue(engine)
)

// engine compiles, but not under the race detector, where the compiler takes a minute for a module in Go.
func engine() wazero.RuntimeConfig { //nolint:ireturn // the library's own form
	config := wazero.NewRuntimeConfig()
	if underRace {
		config = wazero.NewRuntimeConfigInterpreter()
	}

	return config.WithCompilationCache(wazero.NewCompilationCache())
}

func build(pkg string) built {
	code, err := wasmtest.Build(context.Background(), pkg)

	return built{code: code, err: err}
}

// setup returns a lane of a built module.
func setup(tb testing.TB, from built, o Options, log *zap.Logger) *Transform {
	tb.Helper()

	if from.err != nil {
		tb.Fatal(from.err)
	}

	o.Code = from.code

	m, err := New(o, log)
	if err != nil {
		tb.Fatal(err)
	}

	m.engine = shared()

	return lane(tb, m)
}

func lane(tb testing.TB, m *Module) *Transform {
	tb.Helper()

	t := &Transform{module: m}

	tb.Cleanup(func() {
		if err := t.Close(); err != nil {
			tb.Error(err)
		}
	})

	return t
}

// work has the module work at a body and returns the bodies that it makes.
func work(tb testing.TB, t *Transform, body string) ([]string, error) {
	tb.Helper()

	return workFor(tb, t, time.Minute, body)
}

func workFor(tb testing.TB, t *Transform, patience time.Duration, body string) (outs []string, err error) {
	tb.Helper()

	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()

	var next pipelinetest.Recorder

	err = t.Transform(ctx, pipelinetest.Message(body), next.Emit)

	for _, m := range next.Messages {
		outs = append(outs, string(m.Body))
	}

	return outs, err
}
