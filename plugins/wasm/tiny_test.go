package wasm

import "slices"

// Kinds of functions in a [tiny] module, by what they take and return; all numbers are i32.
const (
	oneToOne byte = iota
	twoToOne
	twoToNone
	noneToNone
	fourToOne
	oneToNone
)

// Some instructions.
const (
	opUnreachable = 0x00
	opLoop        = 0x03
	opEnd         = 0x0b
	opBr          = 0x0c
	opCall        = 0x10
	opDrop        = 0x1a
	opConst       = 0x41
	blockEmpty    = 0x40
)

// imported is a function that a [tiny] module imports.
type imported struct {
	from, name string
	kind       byte
}

// exported is a function of a [tiny] module; no name exports nothing.
type exported struct {
	name string
	kind byte
	code []byte
}

// tiny is a module in raw code, for what no compiler makes.
type tiny struct {
	imports   []imported
	functions []exported
	pages     uint64 // 0: no memory
}

// decent passes each message.
func decent() tiny {
	return tiny{
		imports: []imported{{hostModule, "pass", noneToNone}},
		functions: []exported{
			{exportAlloc, oneToOne, constant(1024)},
			{exportProcess, twoToOne, slices.Concat([]byte{opCall, 0}, constant(0))},
		},
		pages: 2,
	}
}

// with has another function in the place of one.
func (t tiny) with(name string, code ...byte) tiny {
	t.functions = slices.Clone(t.functions)

	for i := range t.functions {
		if t.functions[i].name == name {
			t.functions[i].code = code
		}
	}

	return t
}

// without does not export a function.
func (t tiny) without(name string) tiny {
	t.functions = slices.Clone(t.functions)

	for i := range t.functions {
		if t.functions[i].name == name {
			t.functions[i].name = ""
		}
	}

	return t
}

// importing has another function as function 0.
func (t tiny) importing(from, name string, kind byte) tiny {
	t.imports = []imported{{from, name, kind}}

	return t
}

func constant(n int32) []byte { return append([]byte{opConst}, signed(int64(n))...) }

func unsigned(n uint64) (b []byte) {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}

	return append(b, byte(n))
}

func signed(n int64) (b []byte) {
	for ; n < -64 || n > 63; n >>= 7 {
		b = append(b, byte(n)&0x7f|0x80)
	}

	return append(b, byte(n)&0x7f)
}

func counted(content []byte) []byte { return append(unsigned(uint64(len(content))), content...) }

func list[E any](elements []E, each func(i int, e E) []byte) []byte {
	b := unsigned(uint64(len(elements)))
	for i, e := range elements {
		b = append(b, each(i, e)...)
	}

	return b
}

// bytes puts the module together.
func (t tiny) bytes() []byte {
	kinds := []struct{ params, results int }{{1, 1}, {2, 1}, {2, 0}, {0, 0}, {4, 1}, {1, 0}}
	numbers := func(n int) []byte { return counted(slices.Repeat([]byte{0x7f}, n)) }

	module := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, content []byte) { module = append(append(module, id), counted(content)...) }

	section(1, list(kinds, func(_ int, k struct{ params, results int }) []byte {
		return slices.Concat([]byte{0x60}, numbers(k.params), numbers(k.results))
	}))
	section(2, list(t.imports, func(_ int, i imported) []byte {
		return slices.Concat(counted([]byte(i.from)), counted([]byte(i.name)), []byte{0, i.kind})
	}))
	section(3, list(t.functions, func(_ int, f exported) []byte { return []byte{f.kind} }))

	exports := [][]byte{}

	if t.pages > 0 {
		section(5, append([]byte{1, 0}, unsigned(t.pages)...))

		exports = append(exports, append(counted([]byte(exportMemory)), 2, 0))
	}

	for i, f := range t.functions {
		if f.name != "" {
			exports = append(exports, slices.Concat(counted([]byte(f.name)), []byte{0}, unsigned(uint64(len(t.imports)+i))))
		}
	}

	section(7, list(exports, func(_ int, e []byte) []byte { return e }))
	section(10, list(t.functions, func(_ int, f exported) []byte {
		return counted(slices.Concat([]byte{0}, f.code, []byte{opEnd}))
	}))

	return module
}
