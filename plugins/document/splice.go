package document

import "fmt"

// Apply returns the document with the changes made. Values are those of [Changes.Set], in that order, as JSON that must be
// valid; nil leaves the place as it is. It fails with a [*ShapeError] when a place that gets a value cannot be there.
func (p *Plan) Apply(d *Document, values [][]byte) (*Document, error) {
	if len(p.root.children) == 0 && !p.empty {
		return d, nil
	}

	size := len(d.body) + p.names + len(`{}`)

	copy(p.values, values)

	for i := p.set; i < len(p.values); i++ {
		p.values[i] = d.Get(p.from[i]).raw
		size += len(p.values[i])
	}

	for _, v := range values {
		size += len(v)
	}

	next := &Document{}
	next.index = next.room[:0]
	s := splicer{plan: p, source: d, out: make([]byte, 0, size)}

	var err error

	switch kind := d.Root().Kind(); {
	case p.empty && kind != Object:
		err = &ShapeError{Is: kind, Want: "an object"}
	case p.empty:
		err = s.build(&p.root, next)
	default:
		err = s.value(&p.root, d.root, next)
	}

	if err != nil {
		return nil, err
	}

	next.body = s.out
	next.root = span{0, uint32(len(s.out))}

	return next, nil
}

// ShapeError says that a place cannot get a value, since the document is not made like that.
type ShapeError struct {
	// Path is what something else should be.
	Path string
	// Is is what it is.
	Is Kind
	// Want is what it should be.
	Want string
}

// Error names the place, what it is, and what it should be.
func (e *ShapeError) Error() string {
	path := e.Path
	if path == "" {
		path = "the body"
	}

	return fmt.Sprintf("%s is %s, not %s", path, e.Is, e.Want)
}

// splicer writes a document with the changes of a plan.
type splicer struct {
	plan   *Plan
	source *Document
	out    []byte
}

// value writes the value at a place of the source with what changes below n. What it holds is noted in next, unless that is nil.
func (s *splicer) value(n *node, at span, next *Document) error {
	v := s.source.at(at)
	isList := n.children[0].step.index >= 0

	switch kind := v.Kind(); {
	case kind == Object && !isList:
		r := run{s: s, n: n, next: next}

		s.out = append(s.out, '{')
		if err := s.members(&r, at); err != nil {
			return err
		}

		r.flush()

		if err := s.append(n, !r.any, next); err != nil {
			return err
		}

		s.out = append(s.out, '}')

		return nil
	case kind == List && isList:
		return s.list(n, at)
	case !n.fills(s.plan.values):
		s.out = append(s.out, v.raw...)

		return nil
	case kind == Null && !isList:
		return s.build(n, next)
	case isList:
		return &ShapeError{Path: n.path.text, Is: kind, Want: "a list"}
	default:
		return &ShapeError{Path: n.path.text, Is: kind, Want: "an object"}
	}
}

func (s *splicer) members(r *run, at span) error {
	for _, c := range r.n.children {
		c.seen = false
	}

	if r.next != nil {
		return r.indexed(s.source)
	}

	scan := scanner{text: s.source.body[at.from:at.to]}

	for m := range scan.members {
		m.shift(at.from)

		if err := r.item(m, -1); err != nil {
			return err
		}
	}

	return nil
}

func (m *member) shift(by uint32) {
	m.name = span{m.name.from + by, m.name.to + by}
	m.value = span{m.value.from + by, m.value.to + by}
}

func (s *splicer) list(n *node, at span) error {
	for _, c := range n.children {
		c.seen = false
	}

	r := run{s: s, n: n}
	s.out = append(s.out, '[')
	scan := scanner{text: s.source.body[at.from:at.to]}
	i := 0

	for e := range scan.elements {
		m := member{name: span{e.from, e.from}, value: e}
		m.shift(at.from)

		if err := r.item(&m, i); err != nil {
			return err
		}

		i++
	}

	r.flush()

	for _, c := range n.children {
		if !c.seen && c.fills(s.plan.values) {
			return &ShapeError{Path: c.path.text, Is: Missing, Want: fmt.Sprintf("in a list of %d", i)}
		}
	}

	s.out = append(s.out, ']')

	return nil
}

// append writes the members of n that were not seen.
func (s *splicer) append(n *node, first bool, next *Document) error {
	for _, c := range n.children {
		if c.seen || !c.fills(s.plan.values) {
			continue
		}

		if !first {
			s.out = append(s.out, ',')
		}

		first = false

		from := uint32(len(s.out))
		s.out = append(s.out, c.quoted...)

		if c.slot >= 0 {
			s.out = append(s.out, s.plan.values[c.slot]...)
		} else if err := s.build(c, nil); err != nil {
			return err
		}

		if next == nil {
			continue
		}

		e := entry{from: from}
		if len(c.quoted) == len(c.step.name)+len(`"":`) {
			e.mark = c.step.mark
		}

		next.index = append(next.index, e)
	}

	return nil
}

// build writes an object that has only what is put below n.
func (s *splicer) build(n *node, next *Document) error {
	if len(n.children) > 0 && n.children[0].step.index >= 0 {
		return &ShapeError{Path: n.path.text, Is: Missing, Want: "a list"}
	}

	for _, c := range n.children {
		c.seen = false
	}

	s.out = append(s.out, '{')
	if err := s.append(n, true, next); err != nil {
		return err
	}

	s.out = append(s.out, '}')

	return nil
}

// run copies the members of an object, or the elements of a list, as far as they stay as they are in one go.
type run struct {
	s        *splicer
	n        *node
	next     *Document
	from, to uint32 // what is to be copied of the source
	open     bool
	any      bool // something was written or is to be
}

// indexed goes on with all members of a document, most of which stay as they are and are not looked at.
func (r *run) indexed(d *Document) error {
	for i, e := range d.index {
		if !r.n.mayHave(e.mark) {
			r.keep(e)

			continue
		}

		if r.open {
			r.to = d.end(i - 1)
		}

		m := d.member(i)
		if err := r.item(&m, -1); err != nil {
			return err
		}
	}

	if r.open {
		r.to = d.end(len(d.index) - 1)
	}

	return nil
}

// keep goes on with a member that stays as it is. Where it ends is for the caller to say.
func (r *run) keep(e entry) {
	if !r.open {
		r.begin(e.from)
	}

	if r.next != nil {
		// Where it will be: wraps around, as it should, when it moves to the front.
		r.next.index = append(r.next.index, entry{e.from + uint32(len(r.s.out)) - r.from, e.mark})
	}
}

// begin begins to copy.
func (r *run) begin(from uint32) {
	if r.any {
		r.s.out = append(r.s.out, ',')
	}

	r.open, r.any, r.from = true, true, from
}

// item goes on with a member, or with the element that has an index of 0 or more.
func (r *run) item(m *member, index int) error {
	c := r.n.child(r.s.source.body, m, index)

	if c != nil && (c.remove || c.seen && c.slot >= 0 && r.s.plan.values[c.slot] != nil) { // seen: the name stands twice
		c.seen = true
		r.flush()

		return nil
	}

	r.keep(entry{m.name.from, m.mark})
	r.to = m.value.to

	if c == nil {
		return nil
	}

	return r.change(c, m)
}

// change writes a member or an element that changes or has something below it that does.
func (r *run) change(c *node, m *member) error {
	c.seen = true

	if c.slot >= 0 && r.s.plan.values[c.slot] == nil {
		r.s.out = append(r.s.out, r.s.source.body[r.from:m.value.to]...)
		r.from = m.value.to

		return nil
	}

	r.s.out = append(r.s.out, r.s.source.body[r.from:m.value.from]...)
	r.from = m.value.to

	if c.slot >= 0 {
		r.s.out = append(r.s.out, r.s.plan.values[c.slot]...)

		return nil
	}

	return r.s.value(c, m.value, nil)
}

// flush writes what is to be copied.
func (r *run) flush() {
	if r.open {
		r.s.out = append(r.s.out, r.s.source.body[r.from:r.to]...)
	}

	r.open = false
}
