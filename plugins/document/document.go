package document

import (
	"fmt"

	"github.com/millrace/millrace/pipeline"
)

// Document is a body that is one JSON value, with an index of the members of the outermost object. It does not change and is
// safe for concurrent use, as long as nobody writes into the body.
//
// A name that stands twice in an object counts as its last one, as it does to encoding/json.
type Document struct {
	body    []byte
	root    span
	members []member
	room    [inlineMembers]member // for the members of most documents, so that a document is one allocation
}

// inlineMembers is how many members a document has room for by itself: a guess at what most events have.
const inlineMembers = 24

// span is where a value stands in the body.
type span struct{ from, to uint32 }

// member is a name with its quotes, and a value.
type member struct {
	name, value span
	mark        mark
}

// mark tells most names from each other without a look at their bytes: by length, ends and middle. It is 0 for a name with
// escapes, of which it can tell nothing.
type mark uint32

func markOf[T string | []byte](name T) mark {
	n := len(name)
	if n == 0 {
		return 1
	}

	return mark(uint32(name[0])|uint32(name[n/2])<<8|uint32(name[n-1])<<16|uint32(n)<<24) | 1<<31 // which makes it no 0
}

var _ pipeline.Memo = (*Document)(nil)

// Of returns the document in a message's body, which is parsed when no stage has done so before. Only the owner of m may call
// it. It fails with a [*SyntaxError].
func Of(m *pipeline.Message) (*Document, error) {
	if d, ok := m.Memo().(*Document); ok {
		return d, nil
	}

	d, err := Parse(m.Body)
	if err == nil {
		m.SetMemo(d)
	}

	return d, err
}

// Parse checks that body is one JSON value and returns it; the body must not be written to any more. Bytes in strings that are
// no UTF-8 are let pass as they are. It fails with a [*SyntaxError].
func Parse(body []byte) (*Document, error) {
	d := &Document{body: body}
	d.members = d.room[:0]

	s := scanner{text: body}
	if err := s.document(d); err != nil {
		return nil, err
	}

	return d, nil
}

// Source returns the body, which must not be written to.
func (d *Document) Source() []byte { return d.body }

// Root returns the whole value.
func (d *Document) Root() Value { return d.at(d.root) }

// Get returns what stands at a path; a [Missing] value when nothing does.
func (d *Document) Get(p Path) Value {
	if len(p.steps) == 0 {
		return d.Root()
	}

	first := &p.steps[0]
	if first.index >= 0 || len(d.members) == 0 {
		return d.Root().get(p.steps)
	}

	i := d.find(first)
	if i < 0 {
		return Value{}
	}

	v := d.at(d.members[i].value)
	if len(p.steps) == 1 {
		return v
	}

	return v.get(p.steps[1:])
}

// find returns the number of the last member of a name, or -1.
func (d *Document) find(name *step) int {
	for i := len(d.members) - 1; i >= 0; i-- {
		m := &d.members[i]
		if (m.mark == name.mark || m.mark == 0) && m.is(d.body, name.name) {
			return i
		}
	}

	return -1
}

// is reports whether a member of an object in text has the name.
func (m *member) is(text []byte, name string) bool {
	if m.mark == 0 {
		return unescape(text[m.name.from:m.name.to]) == name
	}

	return string(text[m.name.from+1:m.name.to-1]) == name
}

// bit is one of 64 bits.
func (m mark) bit() uint64 {
	const golden = 0x9e3779b9 // spreads all bits of the mark into the upper ones

	return 1 << (uint32(m) * golden >> 26)
}

func (d *Document) at(s span) Value { return Value{raw: d.body[s.from:s.to:s.to]} }

// SyntaxError says where a body is no JSON.
type SyntaxError struct {
	// Offset counts the bytes before the fault.
	Offset int
	// Problem is what is wrong there.
	Problem string
}

// Error names the place and what is wrong there.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("the body is no JSON: %s at byte %d", e.Problem, e.Offset)
}
