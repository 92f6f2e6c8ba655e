// Package meter rewrites WebAssembly modules so that they can be stopped: each turn of a loop, and each call of a function that
// calls others, counts down a number, and when that is used up the module calls a function that whoever runs the module
// watches. Between two of these calls lies a bounded number of instructions, whatever the module does.
//
// Counting costs about a nanosecond, where asking the host each time costs thirty.
//
// It also bounds what a module makes its host allocate, since libraries trust the lengths that they read: whatever says that
// it is longer than the module is refused, and tables get a greatest size.
package meter

import (
	"fmt"
	"slices"
)

// Insert returns the module with counting, and the number of the function that it calls after every so many steps. It does not
// change the bytes that it is given. Of a module that is not valid, it returns an error, or another one that is not; it also
// refuses tables of more than a million elements and functions with more than 50,000 locals.
//
// Nothing that the module numbers gets another number: what is added comes last. Of custom sections, only the names of functions
// are kept.
func Insert(module []byte, every int32) (metered []byte, tick uint32, err error) {
	sections, err := split(module)
	if err != nil {
		return nil, 0, err
	}

	known := numbered(sections)

	if sections, err = bound(sections, known); err != nil {
		return nil, 0, err
	}

	if count(sections, sectionFunction) == 0 {
		return join(sections), 0, nil // there is nothing that could run
	}

	tick = known.functions
	left := unsigned(nil, known.globals) // the global that counts down
	start := slices.Concat(signed([]byte{opI32Const}, every), []byte{opEnd})

	reset := slices.Concat([]byte{0}, signed([]byte{opI32Const}, every), []byte{opGlobalSet}, left, []byte{opEnd})

	sections, err = rewrite(sections, known, additions{
		kind:     []byte{0x60, 0, 0},
		function: unsigned(nil, known.types),
		global:   slices.Concat([]byte{typeI32, 1}, start),
		code:     sized(reset),
		check:    check(left, tick),
	})
	if err != nil {
		return nil, 0, err
	}

	return join(sections), tick, nil
}

// check counts down, and calls the function when nothing is left.
func check(left []byte, tick uint32) []byte {
	return slices.Concat(
		[]byte{opGlobalGet}, left, []byte{opI32Const, 1, opI32Sub, opGlobalSet}, left,
		[]byte{opGlobalGet}, left, []byte{opI32Eqz, opIf, blockEmpty, opCall}, unsigned(nil, tick), []byte{opEnd},
	)
}

// additions are what the sections get, each behind what they have, and the check that goes into the code.
type additions struct{ kind, function, global, code, check []byte }

func rewrite(sections []section, known numbers, a additions) ([]section, error) {
	out := make([]section, 0, len(sections)+1)
	global := false

	for _, s := range sections {
		if !global && rank(s.id) > rank(sectionGlobal) {
			out = append(out, section{sectionGlobal, slices.Concat([]byte{1}, a.global)})
			global = true
		}

		var err error

		switch s.id {
		case sectionType:
			s.content, err = appended(s.content, a.kind)
		case sectionFunction:
			s.content, err = appended(s.content, a.function)
		case sectionGlobal:
			global = true
			s.content, err = appended(s.content, a.global)
		case sectionCode:
			if s.content, err = rewriteCode(s.content, a.check, known); err == nil {
				s.content, err = appended(s.content, a.code)
			}
		}

		if err != nil {
			return nil, fmt.Errorf("section %d: %w", s.id, err)
		}

		out = append(out, s)
	}

	return out, nil
}
