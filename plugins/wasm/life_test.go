package wasm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/wasm/wasmtest"
)

// raw returns a lane of a module in raw code.
func raw(tb testing.TB, module tiny, o Options) *Transform {
	tb.Helper()

	t := setup(tb, built{code: module.bytes()}, o, nil)
	t.module.engine = wazero.NewRuntimeConfig() // these are compiled in no time, also under the race detector

	return t
}

func TestATinyModuleWorks(t *testing.T) {
	t.Parallel()

	if outs, err := work(t, raw(t, decent(), Options{}), "a"); err != nil || !slices.Equal(outs, []string{"a"}) {
		t.Errorf("made %q, %v", outs, err)
	}
}

func TestWhatAModuleLacksIsToldByLint(t *testing.T) {
	t.Parallel()

	noMemory := decent()
	noMemory.pages = 0
	large := decent()
	large.pages = 1025
	shape := decent()
	shape.functions = slices.Clone(shape.functions)
	shape.functions[0].kind, shape.functions[0].code = oneToNone, nil

	for want, code := range map[string][]byte{
		"it exports no function millrace_alloc; docs/wasm.md says":                    decent().without(exportAlloc).bytes(),
		"it exports no function millrace_process; docs/wasm.md says":                  decent().without(exportProcess).bytes(),
		"it exports no memory called memory":                                          noMemory.bytes(),
		"millrace_alloc must take 1 i32 and return one":                               shape.bytes(),
		"min 1025 pages (64 Mi) over limit of 1024 pages (64 Mi)":                     large.bytes(),
		"it is written for millrace_v2, and this is millrace_v1":                      decent().importing("millrace_v2", "pass", noneToNone).bytes(),
		`it imports passs of millrace_v1, which has none; did you mean "pass"?`:       decent().importing(hostModule, "passs", noneToNone).bytes(),
		"it imports pass of millrace_v1 with other parameters or results":             decent().importing(hostModule, "pass", oneToNone).with(exportProcess, constant(0)...).bytes(),
		"it imports exit of env; here modules can import from millrace_v1 and wasi_s": decent().importing("env", "exit", noneToNone).bytes(),
		"it is no module that can run: this is no WebAssembly module":                 []byte("no module at all"),
		"it is no module that can run: ":                                              {},
	} {
		file := filepath.Join(t.TempDir(), "module.wasm")
		if err := os.WriteFile(file, code, 0o600); err != nil {
			t.Fatal(err)
		}

		err := plugins.Decode(file, &Options{})

		mistakes, ok := errors.AsType[*plugins.OptionsError](err)
		if !ok || len(mistakes.Mistakes) != 1 || mistakes.Mistakes[0].Path != "module" || !strings.HasPrefix(mistakes.Mistakes[0].Problem, file+": ") ||
			!strings.Contains(mistakes.Mistakes[0].Problem, want) {
			t.Errorf("the mistake is %v, want %s", err, want)
		}

		// And where nobody has linted, or the file has come later, by the start of the job.
		m := &Module{options: withDefaults(Options{Module: "x", Code: code}), engine: wazero.NewRuntimeConfig()}
		if err := lane(t, m).Open(t.Context()); err == nil {
			t.Errorf("it starts without that: %s", want)
		}
	}
}

func TestAModuleThatIsNotThereStopsTheJobsStart(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()

	var o Options
	if err := plugins.Decode(filepath.Join(dir, "none.wasm"), &o); err != nil {
		t.Fatalf("a module that may still be built is a mistake: %v", err)
	}

	m, err := New(o, nil)
	if err != nil {
		t.Fatal(err)
	}

	if err := lane(t, m).Open(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("opened: %v", err)
	}

	if err := plugins.Decode(dir, &o); err == nil || !strings.Contains(err.Error(), "is no file of at most") {
		t.Errorf("a folder is %v", err)
	}
}

func TestAModuleThatCannotStartStopsTheJob(t *testing.T) {
	t.Parallel()

	begin := func(code ...byte) tiny {
		m := decent()
		m.functions = append(slices.Clone(m.functions), exported{"_initialize", noneToNone, code})

		return m
	}

	for want, module := range map[string]tiny{
		"start: the module was stopped: context deadline exceeded": begin(opLoop, blockEmpty, opBr, 0, opEnd),
		"start: the module has trapped: unreachable":               begin(opUnreachable),
		"start: pass: called outside of millrace_process":          begin(opCall, 0),
		"frobnicate": decent().importing("wasi_snapshot_preview1", "frobnicate", noneToNone),
	} {
		o := Options{Start: plugins.Duration(time.Minute)}
		if strings.Contains(want, "deadline") {
			o.Start = plugins.Duration(soon)
		}

		lane := raw(t, module, o)
		if err := lane.Open(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("opened: %v, want %s", err, want)
		}

		if c := lane.Meter(); c["starts"] != 1 || c["failures"] != 1 {
			t.Errorf("counted %v", c)
		}
	}
}

// TestNonsenseFailsTheMessage calls and returns what no decent module does.
func TestNonsenseFailsTheMessage(t *testing.T) {
	t.Parallel()

	calling := func(name string, kind byte, numbers ...int32) tiny {
		m := decent().importing(hostModule, name, kind)

		var code []byte
		for _, n := range numbers {
			code = append(code, constant(n)...)
		}

		code = append(code, opCall, 0)
		if kind == fourToOne {
			code = append(code, opDrop)
		}

		return m.with(exportProcess, append(code, constant(0)...)...)
	}

	const end = 2 * page

	for want, module := range map[string]tiny{
		"millrace_alloc returned 0, where there are no 4096 bytes":           decent().with(exportAlloc, constant(0)...),
		"millrace_alloc returned 4294967295, where there are no 4096 bytes":  decent().with(exportAlloc, constant(-1)...),
		"millrace_alloc: the module has trapped: unreachable":                decent().with(exportAlloc, opUnreachable),
		"millrace_process returned 7, which is no result":                    decent().with(exportProcess, constant(7)...),
		"millrace_process returned -1, which is no result":                   decent().with(exportProcess, constant(-1)...),
		"emit: the 2 bytes at 131071 are not in the module's memory":         calling("emit", twoToNone, end-1, 2),
		"emit: the 4294967295 bytes at 0 are not in the module's memory":     calling("emit", twoToNone, 0, -1),
		"get: the 1 bytes at 131072 are not in the module's memory":          calling("get", fourToOne, end, 1, 0, 0),
		"get: the 9 bytes at 131071 are not in the module's memory":          calling("get", fourToOne, 0, 1, end-1, 9),
		"set: the 1 bytes at 131072 are not in the module's memory":          calling("set", fourToOne, 0, 0, end, 1),
		"fail: the 1 bytes at 131072 are not in the module's memory":         calling("fail", twoToNone, end, 1),
		"log: the 4294967295 bytes at 4294967295 are not in the module's me": calling("log", twoToNone, -1, -1),
	} {
		lane := raw(t, module, Options{})

		for range 2 {
			outs, err := work(t, lane, "a")
			if len(outs) != 0 || err == nil || !strings.HasPrefix(err.Error(), "wasm: "+want) || pipeline.IsRejected(err) {
				t.Errorf("made %q, the failure is %v, want %s", outs, err, want)
			}
		}

		if c := lane.Meter(); c["starts"] != 2 || c["failures"] != 2 {
			t.Errorf("%s: counted %v", want, c)
		}
	}
}

func TestNothingRunsAfterClose(t *testing.T) {
	t.Parallel()

	lane := raw(t, decent(), Options{})
	if err := lane.Open(t.Context()); err != nil {
		t.Fatal(err)
	}

	if err := lane.Close(); err != nil {
		t.Fatal(err)
	}

	if _, err := work(t, lane, "a"); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if err := raw(t, decent(), Options{}).Open(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("opened when it was over: %v", err)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for _, options := range []any{
		nil, "",
		map[string]any{"module": "x", "most": -1},
		map[string]any{"module": "x", "memory": "5GiB"},
		map[string]any{"module": "x", "output": "3GiB"},
	} {
		if err := plugins.Decode(options, &Options{}); err == nil {
			t.Errorf("%v is taken", options)
		}
	}

	if _, err := New(Options{}, nil); err == nil {
		t.Error("no module is taken")
	}

	if _, err := Lanes(Options{}, nil); err == nil {
		t.Error("no module is taken")
	}
}

func TestTheModuleForTestsOfOthersPasses(t *testing.T) {
	t.Parallel()

	lane := setup(t, built{code: wasmtest.Pass()}, Options{}, nil)

	if outs, err := work(t, lane, "a"); err != nil || !slices.Equal(outs, []string{"a"}) || len(wasmtest.Pass()) != 121 {
		t.Errorf("made %q, %v; it has %d bytes", outs, err, len(wasmtest.Pass()))
	}
}

// TestNothingRunsForEver holds that whatever goes on and on is stopped by the context.
func TestNothingRunsForEver(t *testing.T) {
	t.Parallel()

	const opIf, opBlock, opBrIf, opLocalGet, opSub = 0x04, 0x02, 0x0d, 0x20, 0x6b

	endless := []byte{opLoop, blockEmpty, opBr, 0, opEnd, opUnreachable}

	// fib calls itself twice, and so for longer than anybody waits, never deeper than a few dozen calls.
	fib := decent().with(exportProcess, slices.Concat(constant(80), []byte{opCall, 3})...)
	fib.functions = append(slices.Clone(fib.functions), exported{"", oneToOne, slices.Concat(
		[]byte{opLocalGet, 0, opIf, blockEmpty, opLocalGet, 0}, constant(1), []byte{opSub, opCall, 3, opDrop, opLocalGet, 0},
		constant(1), []byte{opSub, opCall, 3, opDrop, opEnd}, constant(0),
	)})

	for name, module := range map[string]tiny{
		"loop":           decent().with(exportProcess, endless...),
		"loop in alloc":  decent().with(exportAlloc, endless...),
		"loop in blocks": decent().with(exportProcess, slices.Concat([]byte{opBlock, blockEmpty}, constant(1), []byte{opIf, blockEmpty}, endless[:5], []byte{opEnd, opEnd, opUnreachable})...),
		"loop by br_if": decent().with(exportProcess, slices.Concat(
			[]byte{opLoop, blockEmpty}, constant(1), []byte{opBrIf, 0, opEnd}, constant(0))...),
		"recursion": fib,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			lane := raw(t, module, Options{})
			if err := lane.Open(t.Context()); err != nil {
				t.Fatal(err)
			}

			start := time.Now()

			_, err := workFor(t, lane, soon, "a")
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "the module was stopped") {
				t.Errorf("the failure is %v", err)
			}

			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}
