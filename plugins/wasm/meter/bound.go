package meter

import (
	"fmt"
	"slices"
)

// What a module may have, where its own length is no bound.
const (
	mostElements = 1 << 20 // of a table, of 8 bytes each
	mostLocals   = 50_000  // of a function
)

// bound reads each section to its end, as far as lengths go, and returns those that a module needs: what is left says nothing
// about more bytes than there are.
func bound(sections []section, known numbers) ([]section, error) {
	bounded := make([]section, 0, len(sections))

	for _, s := range sections {
		r := reader{bytes: s.content, known: known}

		switch s.id {
		case sectionCustom:
			s.content = names(r)
			if s.content == nil {
				continue
			}

			r = reader{}
		case sectionType:
			r.each(func() { r.expect(0x60); r.each(r.valueType); r.each(r.valueType) })
		case sectionImport:
			r.each(func() { r.importing() })
		case sectionFunction:
			r.each(func() { r.index(known.types) })
		case sectionTable:
			s.content = tables(&r)
		case sectionMemory:
			r.each(func() { r.limits() })
		case sectionGlobal:
			r.each(func() { r.valueType(); r.byte(); r.expression() })
		case sectionExport:
			r.each(r.exporting)
		case sectionStart:
			r.index(known.functions)
		case sectionDataCount:
			r.u32()
		case sectionElement:
			r.each(r.element)
		case sectionCode:
			r.each(func() { r.take(r.u32()) })
		case sectionData:
			r.each(r.data)
		default:
			r.failf("there is no such section")
		}

		if r.err == nil && len(r.bytes) > 0 {
			r.failf("%d bytes too many", len(r.bytes))
		}

		if r.err != nil {
			return nil, fmt.Errorf("section %d: %w", s.id, r.err)
		}

		bounded = append(bounded, s)
	}

	return bounded, nil
}

// tables returns the section of tables with a greatest size for each.
func tables(r *reader) []byte {
	n := uint32(0)

	var content []byte

	r.each(func() {
		content = append(content, r.byte()) // the type of its elements

		least, most := r.limits()
		if least > mostElements {
			r.failf("a table of %d elements, of which %d are allowed", least, mostElements)
		}

		content = append(content, 1)
		content = unsigned(unsigned(content, least), min(most, mostElements))
		n++
	})

	return append(unsigned(nil, n), content...)
}

// names returns a section with the names of functions, for what is said of a trap; nil where a section has none. Names are for
// people, so mistakes in them are none.
func names(r reader) []byte {
	if string(r.take(r.u32())) != "name" {
		return nil
	}

	for r.err == nil && len(r.bytes) > 0 {
		id := r.byte()
		part := reader{bytes: r.take(r.u32())}
		content := part.bytes

		part.each(func() { part.u32(); part.take(part.u32()) })

		const functions = 1
		if id == functions && r.err == nil && part.err == nil && len(part.bytes) == 0 {
			return slices.Concat(sized([]byte("name")), []byte{functions}, sized(content))
		}
	}

	return nil
}

// importing reads an import and returns its kind: a function, table, memory or global.
func (r *reader) importing() (kind byte) {
	r.take(r.u32())
	r.take(r.u32())

	switch kind = r.byte(); kind {
	case kindFunction:
		r.index(r.known.types)
	case kindTable:
		r.valueType()
		r.limits()
	case kindMemory:
		r.limits()
	case kindGlobal:
		r.valueType()
		r.byte()
	default:
		r.failf("an import of kind %d", kind)
	}

	return kind
}

// exporting reads an export.
func (r *reader) exporting() {
	r.take(r.u32())

	switch r.byte() {
	case kindFunction:
		r.index(r.known.functions)
	case kindGlobal:
		r.index(r.known.globals)
	default:
		r.u32()
	}
}

// Kinds of imports and exports.
const (
	kindFunction = iota
	kindTable
	kindMemory
	kindGlobal
)

// numbered counts what a module has, where what it imports comes first.
func numbered(sections []section) numbers {
	n := numbers{count(sections, sectionType), count(sections, sectionFunction), count(sections, sectionGlobal)}

	for _, s := range sections {
		if s.id != sectionImport {
			continue
		}

		r := reader{bytes: s.content, known: n}
		r.each(func() {
			switch r.importing() {
			case kindFunction:
				n.functions++
			case kindGlobal:
				n.globals++
			}
		})
	}

	return n
}

// element reads elements of a table, which are functions or expressions, as the bits of a number say.
func (r *reader) element() {
	flags := r.u32()
	if flags > 7 {
		r.failf("elements of kind %d", flags)
	}

	passive, explicit, expressions := flags&1 != 0, flags&2 != 0, flags&4 != 0

	if !passive {
		if explicit {
			r.u32()
		}

		r.expression()
	}

	if passive || explicit {
		r.valueType() // or the kind of element, which is one byte, too
	}

	if expressions {
		r.each(r.expression)
	} else {
		r.each(func() { r.index(r.known.functions) })
	}
}

// data reads bytes for a memory.
func (r *reader) data() {
	switch flags := r.u32(); flags {
	case 0:
		r.expression()
	case 1:
	case 2:
		r.u32()
		r.expression()
	default:
		r.failf("data of kind %d", flags)
	}

	r.take(r.u32())
}
