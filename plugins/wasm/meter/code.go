package meter

import "fmt"

// Instructions that are written, or that need a look.
const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opEnd          = 0x0b
	opBrTable      = 0x0e
	opCall         = 0x10
	opCallIndirect = 0x11
	opSelectTyped  = 0x1c
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opI32Const     = 0x41
	opF32Const     = 0x43
	opF64Const     = 0x44
	opI32Eqz       = 0x45
	opI32Sub       = 0x6b
	opRefFunc      = 0xd2
	opMore         = 0xfc
	opVector       = 0xfd

	typeI32    = 0x7f
	blockEmpty = 0x40
)

// rewriteCode puts the check into each function of a code section.
func rewriteCode(content, check []byte, known numbers) ([]byte, error) {
	r := reader{bytes: content}
	n := r.u32()
	out := unsigned(make([]byte, 0, len(content)+len(content)/4), n)

	for i := range n {
		body, err := rewriteBody(reader{bytes: r.take(r.u32()), known: known}, check)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}

		if r.err != nil {
			return nil, r.err
		}

		out = unsigned(out, uint32(len(body)))
		out = append(out, body...)
	}

	return append(out, r.bytes...), r.err
}

// rewriteBody puts the check behind the head of each loop, and at the beginning of a function that can call another one
// without having passed one.
func rewriteBody(r reader, check []byte) ([]byte, error) {
	var (
		body   = r.bytes
		locals uint64
	)

	r.each(func() {
		locals += uint64(r.u32())
		r.valueType()
	})

	if locals > mostLocals {
		r.failf("%d locals, of which %d are allowed", locals, mostLocals)
	}

	var (
		begin = len(body) - len(r.bytes)
		loops []int
		depth int
		// passed says that whoever has come here has passed a check, calls that a call may come without one.
		passed, calls bool
	)

	for len(r.bytes) > 0 {
		switch op := r.instruction(); op {
		case opLoop:
			loops = append(loops, len(body)-len(r.bytes))
			passed = passed || depth == 0
			depth++
		case opBlock, opIf:
			depth++
		case opEnd:
			depth--
		case opCall, opCallIndirect:
			calls = calls || !passed
		}
	}

	if r.err != nil {
		return nil, r.err
	}

	out := make([]byte, 0, len(body)+(len(loops)+1)*len(check))
	out = append(out, body[:begin]...)

	if calls {
		out = append(out, check...)
	}

	for _, at := range loops {
		out = append(append(out, body[begin:at]...), check...)
		begin = at
	}

	return append(out, body[begin:]...), nil
}

// instruction skips one, with what belongs to it, and returns what it is.
func (r *reader) instruction() byte {
	op := r.byte()

	switch {
	case op == opBrTable:
		r.each(r.skip)
		r.skip()
	case op == opSelectTyped:
		r.take(r.u32())
	case op == opF32Const:
		r.take(4)
	case op == opF64Const:
		r.take(8)
	case op == opMore:
		r.more(r.u32())
	case op == opVector:
		r.vector(r.u32())
	case op >= opBlock && op <= opIf:
		r.blockType()
	case op == opCall, op == opRefFunc:
		r.index(r.known.functions)
	case op == opCallIndirect:
		r.index(r.known.types)
		r.skip()
	case op == opGlobalGet, op == opGlobalSet:
		r.index(r.known.globals)
	case op >= 0x28 && op <= 0x3e: // loads and stores: alignment and offset
		r.skip()
		r.skip()
	case op == 0x0c, op == 0x0d, op >= 0x20 && op <= 0x26, // a label, a local or a table
		op >= 0x3f && op <= 0x42, op == 0xd0: // a memory, a number, a type
		r.skip()
	case op <= 0x01, op == 0x05, op == opEnd, op == 0x0f, op == 0x1a, op == 0x1b, op >= opI32Eqz && op <= 0xc4, op == 0xd1:
	default:
		r.failf("an instruction %#x", op)
	}

	return op
}

// more skips what belongs to one of the instructions for saturating conversion and for bulks of memory.
func (r *reader) more(op uint32) {
	switch {
	case op <= 7:
	case op == 8, op == 10, op == 12, op == 14:
		r.skip()
		r.skip()
	case op <= 17:
		r.skip()
	default:
		r.failf("an instruction 0xfc %d", op)
	}
}

// vector skips what belongs to one of the instructions for vectors.
func (r *reader) vector(op uint32) {
	switch {
	case op <= 11, op == 92, op == 93: // loads and stores
		r.skip()
		r.skip()
	case op == 12, op == 13: // a constant, or the lanes of a shuffle
		r.take(16)
	case op >= 21 && op <= 34: // a lane
		r.take(1)
	case op >= 84 && op <= 91: // both
		r.skip()
		r.skip()
		r.take(1)
	case op > 255:
		r.failf("an instruction 0xfd %d", op)
	}
}
