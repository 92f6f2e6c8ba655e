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
	body  []byte
	root  span
	index []entry
	room  [inlineMembers]entry // for the members of most documents, so that a document is one allocation
}

// inlineMembers is how many members a document has room for by itself: a guess at what most events have.
const inlineMembers = 24

// span is where a value stands in the body.
type span struct{ from, to uint32 }

// entry is a member in the index. It is small, since each message has an index or two; what it leaves out is found in the body
// (see [Document.member]).
type entry struct {
	from uint32 // where the name begins, with its quote
	mark mark
}

// member is a name with its quotes, and a value.
type member struct {
	name, value span
	mark        mark
}

// mark tells most names from each other without a look at their bytes: by length, ends and middle. It is 0 for a name with
// escapes, of which it can tell nothing.
type mark uint32

// longName is the length in the mark of names that are that long or longer.
const longName = 127

func markOf[T string | []byte](name T) mark {
	const noZero = 1 << 31

	n := len(name)
	if n == 0 {
		return noZero
	}

	return mark(uint32(name[0])|uint32(name[n/2])<<8|uint32(name[n-1])<<16|uint32(min(n, longName))<<24) | noZero
}

// length returns the length of the name, unless it has escapes or is long.
func (m mark) length() (n uint32, ok bool) {
	n = uint32(m) >> 24 & longName

	return n, m != 0 && n < longName
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
	d.index = d.room[:0]

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
	if first.index >= 0 || len(d.index) == 0 {
		return d.Root().get(p.steps)
	}

	m, found := d.find(first)
	if !found {
		return Value{}
	}

	v := d.at(m.value)
	if len(p.steps) == 1 {
		return v
	}

	return v.get(p.steps[1:])
}

// find returns the last member of a name.
func (d *Document) find(name *step) (m member, ok bool) {
	for back := range d.index {
		i := len(d.index) - 1 - back
		if m.mark = d.index[i].mark; m.mark != name.mark && m.mark != 0 {
			continue
		}

		if m.name = d.name(i); m.is(d.body, name.name) {
			m.value = d.value(i, m.name.to)

			return m, true
		}
	}

	return m, false
}

// member returns a member by its number.
func (d *Document) member(i int) member {
	name := d.name(i)

	return member{name: name, value: d.value(i, name.to), mark: d.index[i].mark}
}

// value returns where the value of a member stands whose name ends at the given place.
func (d *Document) value(i int, nameEnd uint32) span {
	from := nameEnd
	for c := d.body[from]; c <= ' ' || c == ':'; c = d.body[from] {
		from++
	}

	return span{from, d.end(i)}
}

// name returns where the name of a member stands.
func (d *Document) name(i int) span {
	e := d.index[i]
	if n, ok := e.mark.length(); ok {
		return span{e.from, e.from + n + uint32(len(`""`))}
	}

	s := scanner{text: d.body}

	return span{e.from, uint32(s.string(int(e.from)))}
}

// end returns where the value of a member ends: what stands before the next member is a comma, with space around it.
func (d *Document) end(i int) uint32 {
	if i+1 == len(d.index) {
		return trim(d.body, d.root.to-1)
	}

	return trim(d.body, trim(d.body, d.index[i+1].from)-1)
}

// trim goes back over space, which is all that is no greater than one outside of strings.
func trim(text []byte, to uint32) uint32 {
	for text[to-1] <= ' ' {
		to--
	}

	return to
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
