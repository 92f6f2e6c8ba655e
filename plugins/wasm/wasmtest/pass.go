package wasmtest

// Pass returns a module in raw code that passes each message as it is: 121 bytes, of which docs/wasm.md shows the text. It is
// for tests of what lies around modules, which need not wait for a compiler.
func Pass() []byte {
	return []byte("\x00asm\x01\x00\x00\x00" +
		// Types: none to none, one to one, two to one.
		"\x01\x0f\x03\x60\x00\x00\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7f\x01\x7f" +
		"\x02\x14\x01\x0bmillrace_v1\x04pass\x00\x00" + // imports
		"\x03\x03\x02\x01\x02" + // functions 1 and 2, by their types
		"\x05\x03\x01\x00\x02" + // memory of two pages
		"\x07\x2e\x03\x06memory\x02\x00\x0emillrace_alloc\x00\x01\x10millrace_process\x00\x02" + // exports
		"\x0a\x0e\x02\x05\x00\x41\x80\x08\x0b\x06\x00\x10\x00\x41\x00\x0b") // code
}
