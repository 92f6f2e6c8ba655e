package wasm

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

// fuzzed are small, so that limits are met; soon is enough for what ends.
const soon = 100 * time.Millisecond

func small(code []byte) Options {
	return Options{Code: code, Memory: 2 * page, Most: 8, Output: page, Start: 1e8}
}

// FuzzCalls has a module call our functions with anything, in any order: a byte chooses the function, and four more choose
// each number.
func FuzzCalls(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x08\x00\x00\x00\x08"))
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x10\x01\x01\x01"))
	f.Add([]byte("\x03\xff\xff\xff\xff\x00\x00\x00\x01\x00\x00\x00\x00\x7f\xff\xff\xff"))

	f.Fuzz(func(t *testing.T, script []byte) {
		lane := fuzzed(t, calling(script).bytes())

		var next pipelinetest.Recorder

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		m := pipelinetest.Message("id=tag=props.p")
		m.SetProp("p", "v")

		err := lane.Transform(ctx, m, next.Emit)
		if err != nil && len(next.Messages) > 0 || len(next.Messages) > 8 {
			t.Errorf("made %d of a message that failed: %v", len(next.Messages), err)
		}

		if errors.Is(err, context.DeadlineExceeded) || pipeline.IsRejected(err) || string(m.Body) != "id=tag=props.p" || len(m.Props) != 1 || m.Tag != "" {
			t.Errorf("the failure is %v, the message %+v", err, m)
		}
	})
}

// calling is a module that calls functions as a script says.
func calling(script []byte) tiny {
	kinds := map[int]byte{0: noneToNone, 1: oneToNone, 2: twoToNone, 4: fourToOne}
	m := decent()
	m.imports = nil

	functions := functions()
	for _, f := range functions {
		m.imports = append(m.imports, imported{hostModule, f.name, kinds[f.params]})
	}

	var code []byte

	number := func() int32 {
		var n int32

		for i := 0; i < 4 && len(script) > 0; i++ {
			n = n<<8 | int32(script[0])
			script = script[1:]
		}

		return n
	}

	for len(script) > 0 {
		which := int(script[0]) % len(functions)
		script = script[1:]

		for range functions[which].params {
			code = append(code, constant(number())...)
		}

		code = append(code, opCall, byte(which))
		if functions[which].results > 0 {
			code = append(code, opDrop)
		}
	}

	return m.with(exportProcess, append(code, constant(0)...)...)
}

func fuzzed(tb testing.TB, code []byte) *Transform {
	tb.Helper()

	engine := wazero.NewRuntimeConfigInterpreter()

	return lane(tb, &Module{options: withDefaults(small(code)), engine: engine, log: zap.NewNop()})
}

// FuzzModules runs whatever is a module, in a small box.
func FuzzModules(f *testing.F) {
	f.Add(decent().bytes())
	f.Add(calling([]byte("\x01\x00\x00\x00\x00\x08\x00\x00\x00\x08")).bytes())
	f.Add(decent().with(exportProcess, opLoop, blockEmpty, opBr, 0, opEnd, opUnreachable).bytes())
	f.Add(decent().without(exportAlloc).bytes())

	f.Fuzz(func(t *testing.T, code []byte) {
		linted := check(t.Context(), code, 2)
		lane := fuzzed(t, code)

		ctx, cancel := context.WithTimeout(t.Context(), soon)
		defer cancel()

		if err := lane.Open(ctx); err == nil && linted != nil {
			t.Errorf("a module with a mistake starts: %v", linted)
		}

		for range 2 {
			_ = lane.Transform(ctx, pipelinetest.Message("x"), func(*pipeline.Message) error { return nil }) // it may fail, and may not
		}
	})
}
