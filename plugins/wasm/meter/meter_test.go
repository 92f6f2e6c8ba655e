package meter

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"go.uber.org/goleak"

	"github.com/millrace/millrace/plugins/wasm/wasmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counter counts how often a function is called.
type counter struct {
	tick  uint32
	calls int
}

//nolint:ireturn // as it is asked for
func (c *counter) NewFunctionListener(f api.FunctionDefinition) experimental.FunctionListener {
	if f.Index() == c.tick {
		return c
	}

	return nil
}

func (c *counter) Before(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {
	c.calls++
}

func (*counter) After(context.Context, api.Module, api.FunctionDefinition, []uint64) {}

func (*counter) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

// oneToOne is the section of types with one in it, which takes a number and returns one.
const oneToOne = "\x01\x06\x01\x60\x01\x7f\x01\x7f"

// lengthed puts the length before something short.
func lengthed(content string) string { return string([]byte{byte(len(content))}) + content }

// sums has a function "sum" that adds up the numbers from its parameter down to 1, in a loop, "deep" that does it by calling
// itself, and "hidden" that is deep with a loop that it never comes to.
func sums() []byte {
	return []byte(header + oneToOne +
		"\x03\x04\x03\x00\x00\x00" +
		"\x07\x17\x03\x03sum\x00\x00\x04deep\x00\x01\x06hidden\x00\x02" +
		"\x0a" + lengthed("\x03"+
		lengthed("\x01\x01\x7f\x03\x40\x20\x01\x20\x00\x6a\x21\x01\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x20\x01\x0b")+
		lengthed("\x00\x20\x00\x45\x04\x7f\x41\x00\x05\x20\x00\x20\x00\x41\x01\x6b\x10\x01\x6a\x0b\x0b")+
		lengthed("\x00\x41\x00\x04\x40\x03\x40\x0b\x0b\x20\x00\x45\x04\x7f\x41\x00\x05\x20\x00\x20\x00\x41\x01\x6b\x10\x02\x6a\x0b\x0b")))
}

// operations are one of each shape of instruction behind an unreachable, where anything goes.
func operations() []string {
	return []string{
		"\x01", "\x02\x40\x0b", "\x02\x00\x0b", "\x04\x40\x05\x0b", "\x0c\x00", "\x0d\x00", "\x0e\x02\x00\x00\x00", "\x0f", "\x10\x00",
		"\x11\x00\x00", "\x1a", "\x1b", "\x1c\x01\x7f", "\x20\x00", "\x21\x00", "\x22\x00", "\x23\x00", "\x24\x00", "\x25\x00", "\x26\x00",
		"\x28\x02\x80\x08", "\x29\x03\x00", "\x36\x02\x00", "\x3e\x02\x00", "\x3f\x00", "\x40\x00", "\x41\xff\xff\xff\xff\x07", "\x42\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f",
		"\x43\x03\x03\x03\x03", "\x44\x03\x03\x03\x03\x03\x03\x03\x03", "\x45", "\xc4", "\xd0\x70", "\xd1", "\xd2\x00",
		"\xfc\x00", "\xfc\x07", "\xfc\x08\x00\x00", "\xfc\x09\x00", "\xfc\x0a\x00\x00", "\xfc\x0b\x00", "\xfc\x0c\x00\x00", "\xfc\x0d\x00",
		"\xfc\x0e\x00\x00", "\xfc\x0f\x00", "\xfc\x10\x00", "\xfc\x11\x00",
		"\xfd\x00\x04\x00", "\xfd\x0b\x04\x00", "\xfd\x0c0123456789abcdef", "\xfd\x0d\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f",
		"\xfd\x0e", "\xfd\x15\x03", "\xfd\x1c\x03", "\xfd\x22\x01", "\xfd\x23", "\xfd\x54\x00\x00\x03", "\xfd\x5b\x03\x00\x01", "\xfd\x5c\x02\x00", "\xfd\xff\x01",
	}
}

// instructions is a valid module with one function for each of the operations, a table, a memory, a global, an element and data.
func instructions() []byte {
	// Behind the operation stands a loop: whoever does not know where the operation ends does not find it.
	var code []string
	for _, op := range operations() {
		code = append(code, lengthed("\x00\x00"+op+"\x03\x40\x0b\x00\x0b"))
	}

	functions := string([]byte{byte(len(code))})

	all := functions + strings.Join(code, "")
	size := string([]byte{byte(len(all))&0x7f | 0x80, byte(len(all) >> 7)})

	return []byte(header + oneToOne +
		"\x03" + lengthed(functions+strings.Repeat("\x00", len(code))) +
		"\x04\x04\x01\x70\x00\x01" + // a table of functions
		"\x05\x03\x01\x00\x01" + // a memory
		"\x06\x06\x01\x7f\x01\x41\x00\x0b" + // a global
		"\x09\x07\x01\x00\x41\x00\x0b\x01\x00" + // an element
		"\x0c\x01\x01" + // the number of data
		"\x0a" + size + all +
		"\x0b\x04\x01\x01\x01x") // data
}

func TestEveryInstructionIsKnown(t *testing.T) {
	t.Parallel()

	module := instructions()
	if !valid(t, module) {
		t.Fatal("the module of this test is not valid")
	}

	metered, _, err := Insert(module, 100)
	if err != nil || !valid(t, metered) {
		t.Fatalf("it is valid no more: %v", err)
	}

	// A check in each function, and the function that is called.
	check := len("\x23\x01\x41\x01\x6b\x24\x01\x23\x01\x45\x04\x40\x10\x40\x0b")
	if grown := len(metered) - len(module); grown < check*len(operations()) {
		t.Errorf("%d functions have grown by %d bytes, want %d each", len(operations()), grown, check)
	}
}

func TestStepsAreCounted(t *testing.T) {
	t.Parallel()

	const every, n = 10, 1000

	given := sums()
	before := bytes.Clone(given)

	metered, tick, err := Insert(given, every)
	if err != nil || tick != 3 || !bytes.Equal(given, before) {
		t.Fatalf("function %d, %v", tick, err)
	}

	for _, engine := range []wazero.RuntimeConfig{wazero.NewRuntimeConfig(), wazero.NewRuntimeConfigInterpreter()} {
		for name, want := range map[string]int{"sum": n / every, "deep": n / every, "hidden": n / every} {
			c := counter{tick: tick}
			ctx := experimental.WithFunctionListenerFactory(t.Context(), &c)
			r := wazero.NewRuntimeWithConfig(ctx, engine)

			m, err := r.Instantiate(ctx, metered)
			if err != nil {
				t.Fatal(err)
			}

			got, err := m.ExportedFunction(name).Call(ctx, n)
			if err != nil || len(got) != 1 || got[0] != n*(n+1)/2 {
				t.Errorf("%s is %d, %v", name, got, err)
			}

			if c.calls != want {
				t.Errorf("%s was looked at %d times, want %d", name, c.calls, want)
			}

			if err := r.Close(ctx); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestAModuleInGoIsValidAfterwards(t *testing.T) {
	t.Parallel()

	code, err := wasmtest.Build(t.Context(), "../example")
	if err != nil {
		t.Fatal(err)
	}

	metered, _, err := Insert(code, 1000)
	if err != nil || !valid(t, metered) {
		t.Errorf("it is valid no more: %v", err)
	}

	if len(metered) > 2*len(code) {
		t.Errorf("%d bytes became %d", len(code), len(metered))
	}
}

// valid reports whether the library takes a module. Over some that are not valid, it panics.
func valid(tb testing.TB, module []byte) (ok bool) {
	tb.Helper()

	ctx := tb.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())

	defer func() {
		if recover() != nil {
			ok = false
		}

		if err := r.Close(ctx); err != nil {
			tb.Error(err)
		}
	}()

	_, err := r.CompileModule(ctx, module)

	return err == nil
}

// FuzzInsert holds that the library can read whatever was metered, and takes it as it has taken the module before.
func FuzzInsert(f *testing.F) {
	f.Add(sums())
	f.Add(instructions())
	f.Add(wasmtest.Pass())
	f.Add([]byte(header))
	f.Add([]byte(header + "\x00\x0d\x04name\x01\x06\x01\x00\x03sum"))
	f.Add([]byte(header + "\x01\x04\x01\x60\x00\x00" + "\x03\x02\x01\x00" + "\x0a\x08\x01\x06\x00\x00\x23\x00\x1a\x0b"))

	f.Fuzz(func(t *testing.T, module []byte) {
		metered, tick, err := Insert(module, 100)
		if err != nil {
			return // nobody else may look at it: it could say that it is as large as nothing that there is
		}

		if again, _, err := Insert(metered, 100); err != nil {
			t.Errorf("it is not taken again, with function %d: %v, %d bytes", tick, err, len(again))
		}

		sections, _ := split(module)
		custom := slices.ContainsFunc(sections, func(s section) bool { return s.id == sectionCustom })

		// Custom sections are dropped, so nobody may look at the module with them.
		if !custom && valid(t, module) != valid(t, metered) {
			t.Errorf("it was valid: %t, and is: %t", valid(t, module), valid(t, metered))
		}
	})
}

func TestWhatSaysThatItIsLargerThanItIsIsRefused(t *testing.T) {
	t.Parallel()

	const huge = "\xff\xff\xff\xff\x0f"

	for name, rest := range map[string]string{
		"a section":             "\x01" + huge,
		"types":                 "\x01" + lengthed(huge),
		"parameters":            "\x01" + lengthed("\x01\x60"+huge),
		"results":               "\x01" + lengthed("\x01\x60\x00"+huge),
		"imports":               "\x02" + lengthed(huge),
		"an import's name":      "\x02" + lengthed("\x01"+huge),
		"functions":             "\x03" + lengthed(huge),
		"tables":                "\x04" + lengthed(huge),
		"a table":               "\x04" + lengthed("\x01\x70\x00"+huge),
		"memories":              "\x05" + lengthed(huge),
		"globals":               "\x06" + lengthed(huge),
		"exports":               "\x07" + lengthed(huge),
		"an export's name":      "\x07" + lengthed("\x01"+huge),
		"elements":              "\x09" + lengthed(huge),
		"functions in elements": "\x09" + lengthed("\x01\x00\x41\x00\x0b"+huge),
		"expressions":           "\x09" + lengthed("\x01\x05\x70"+huge),
		"code":                  "\x0a" + lengthed(huge),
		"a function":            "\x03\x02\x01\x00\x0a" + lengthed("\x01"+huge),
		"groups of locals":      "\x03\x02\x01\x00\x0a" + lengthed("\x01"+lengthed(huge)),
		"locals":                "\x03\x02\x01\x00\x0a" + lengthed("\x01"+lengthed("\x01"+huge+"\x7f\x0b")),
		"labels":                "\x03\x02\x01\x00\x0a" + lengthed("\x01"+lengthed("\x00\x0e"+huge)),
		"data":                  "\x0b" + lengthed(huge),
		"bytes of data":         "\x0b" + lengthed("\x01\x01"+huge),
		"nothing that there is": "\x0e" + lengthed("\x00"),
		"more than it counts":   "\x03" + lengthed("\x01\x00\x00"),
	} {
		if _, _, err := Insert([]byte(header+rest), 100); err == nil {
			t.Errorf("%s: a module that says so is taken", name)
		}
	}

	// Names are for people: they are dropped.
	for name, rest := range map[string]string{
		"a name":     "\x04name\x01\x07\x01\x00" + huge,
		"names":      "\x04name\x01\x05" + huge,
		"a part":     "\x04name\x01" + huge,
		"no section": huge,
	} {
		metered, _, err := Insert([]byte(header+"\x00"+lengthed(rest)), 100)
		if err != nil || string(metered) != header {
			t.Errorf("%s: %q, %v", name, metered, err)
		}
	}
}

func TestTablesGetAGreatestSize(t *testing.T) {
	t.Parallel()

	for given, want := range map[string]string{
		"\x70\x00\x05":                     "\x70\x01\x05\x80\x80\x40",
		"\x70\x01\x05\xff\xff\xff\xff\x0f": "\x70\x01\x05\x80\x80\x40",
		"\x6f\x01\x05\x06":                 "\x6f\x01\x05\x06",
	} {
		metered, _, err := Insert([]byte(header+"\x04"+lengthed("\x01"+given)), 100)
		if err != nil || string(metered) != header+"\x04"+lengthed("\x01"+want) || !valid(t, metered) {
			t.Errorf("%q becomes %q, %v", given, metered, err)
		}
	}
}

// TestNobodyNamesWhatIsAdded holds that a module that is not valid since it names a type, a function or a global behind its own
// does not get what it names: with the global that counts down, it would count anew in each turn and never stop.
func TestNobodyNamesWhatIsAdded(t *testing.T) {
	t.Parallel()

	const (
		oneType     = "\x01\x04\x01\x60\x00\x00"
		oneFunction = "\x03\x02\x01\x00"
		oneGlobal   = "\x06\x06\x01\x7f\x01\x41\x00\x0b"
		oneTable    = "\x04\x04\x01\x70\x00\x01"
		nothing     = "\x0a\x04\x01\x02\x00\x0b"
	)

	code := func(instructions string) string {
		return oneType + oneFunction + oneTable + oneGlobal + "\x0a" + lengthed("\x01"+lengthed("\x00\x00"+instructions+"\x0b"))
	}

	for name, of := range map[string]func(n string) string{
		"a call":            func(n string) string { return code("\x10" + n) },
		"a call by a table": func(n string) string { return code("\x11" + n + "\x00") },
		"a reference": func(n string) string {
			return oneType + oneFunction + "\x07\x05\x01\x01f\x00\x00" + "\x0a" + lengthed("\x01"+lengthed("\x00\xd2"+n+"\x1a\x0b"))
		},
		"a global that is read": func(n string) string { return code("\x23" + n + "\x1a") },
		"a global that is set":  func(n string) string { return code("\x24" + n) },
		"a block":               func(n string) string { return code("\x02" + n + "\x0b") },
		"a loop":                func(n string) string { return code("\x03" + n + "\x0b") },
		"a function's type":     func(n string) string { return oneType + "\x03\x02\x01" + n + nothing },
		"an import's type":      func(n string) string { return oneType + "\x02\x07\x01\x01m\x01f\x00" + n + oneFunction + nothing },
		"a function's export":   func(n string) string { return oneType + oneFunction + "\x07\x05\x01\x01f\x00" + n + nothing },
		"a global's export": func(n string) string {
			return oneType + oneFunction + oneGlobal + "\x07\x05\x01\x01g\x03" + n + nothing
		},
		"the start": func(n string) string { return oneType + oneFunction + "\x08\x01" + n + nothing },
		"an element": func(n string) string {
			return oneType + oneFunction + oneTable + "\x09\x07\x01\x00\x41\x00\x0b\x01" + n + nothing
		},
		"an element's expression": func(n string) string {
			return oneType + oneFunction + oneTable + "\x09\x09\x01\x04\x41\x00\x0b\x01\xd2" + n + "\x0b" + nothing
		},
		"a global's value": func(n string) string {
			return oneType + oneFunction + "\x06\x06\x01\x70\x00\xd2" + n + "\x0b" + nothing
		},
	} {
		own, next := []byte(header+of("\x00")), []byte(header+of("\x01"))
		if !valid(t, own) || valid(t, next) {
			t.Errorf("%s: the modules of this test are not as they should be", name)
		}

		if metered, _, err := Insert(own, 100); err != nil || valid(t, metered) != valid(t, own) {
			t.Errorf("%s: what names its own is not taken: %v", name, err)
		}

		if _, _, err := Insert(next, 100); err == nil || !strings.Contains(err.Error(), "number 1 of") {
			t.Errorf("%s: what names the next one is taken: %v", name, err)
		}
	}
}
