package meter

import (
	"bytes"
	"errors"
	"slices"
)

// Sections by their numbers, as far as they matter here.
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
)

const header = "\x00asm\x01\x00\x00\x00"

// section is one part of a module.
type section struct {
	id      byte
	content []byte
}

// rank is the place of a section among the others.
func rank(id byte) int {
	switch id {
	case sectionCustom:
		return 0
	case sectionDataCount:
		return 2*sectionCode - 1
	default:
		return 2 * int(id)
	}
}

// split returns the sections of a module.
func split(module []byte) ([]section, error) {
	if !bytes.HasPrefix(module, []byte(header)) {
		return nil, errors.New("this is no WebAssembly module")
	}

	r := reader{bytes: module[len(header):]}

	var sections []section

	for r.err == nil && len(r.bytes) > 0 {
		s := section{id: r.byte()}
		s.content = r.take(r.u32())
		sections = append(sections, s)
	}

	return sections, r.err
}

func join(sections []section) []byte {
	module := []byte(header)

	for _, s := range sections {
		module = append(module, s.id)
		module = append(module, sized(s.content)...)
	}

	return module
}

// count returns how many elements a section has.
func count(sections []section, id byte) uint32 {
	for _, s := range sections {
		if s.id == id {
			r := reader{bytes: s.content}

			return r.u32()
		}
	}

	return 0
}

// appended returns a section with one more element.
func appended(content, element []byte) ([]byte, error) {
	r := reader{bytes: content}
	n := r.u32()

	return slices.Concat(unsigned(nil, n+1), r.bytes, element), r.err
}
