package document

import (
	"errors"
	"fmt"
	"slices"
)

// Plan is a set of changes, all of which speak of the document as it was before any of them. It belongs to one goroutine.
type Plan struct {
	root node
	// from says for each slot where its value comes from; those of Set come from the caller.
	from   []Path
	set    int
	values [][]byte
	empty  bool
	names  int // bytes of all names, as they are written
}

// node is a place in the document where something changes, or below which something does.
type node struct {
	step     step
	path     Path
	quoted   string // the name as it is written, with the colon
	children []*node
	slot     int // of the value that is put here; -1 for none
	remove   bool
	seen     bool   // while an object or list is written: the node is there
	marks    uint64 // of the children, a bit each, so that most members are seen at once to be none of them
}

// Changes are what a [Plan] does. Two of them may not meet in one place, nor one below another.
type Changes struct {
	// Set lists the places that get a value, which [Plan.Apply] is given. Objects that are missing on the way are made.
	Set []Path
	// Remove lists what is removed where it is there.
	Remove []Path
	// Move maps places to those where their values go. What is not there is not moved.
	Move map[string]Path
	// Keep lists the only places that are kept, beside those of Set and Move; nil keeps all.
	Keep []Path
}

// NewPlan prepares changes. It fails for changes that meet.
func NewPlan(c Changes) (*Plan, error) {
	p := &Plan{root: node{slot: -1}, set: len(c.Set), empty: c.Keep != nil}

	var errs []error

	put := func(at Path, change func(*node)) {
		n, err := p.leaf(at)
		if err != nil {
			errs = append(errs, err)

			return
		}

		change(n)
	}
	slot := func(from Path) func(*node) {
		return func(n *node) {
			n.slot = len(p.from)
			p.from = append(p.from, from)
		}
	}

	for _, at := range c.Set {
		put(at, slot(Path{}))
	}

	for _, at := range c.Remove {
		put(at, func(n *node) { n.remove = true })
	}

	for _, name := range sortedKeys(c.Move) {
		from, err := ParsePath(name)
		if err != nil {
			errs = append(errs, err)

			continue
		}

		if !p.empty {
			put(from, func(n *node) { n.remove = true })
		}

		put(c.Move[name], slot(from))
	}

	for _, at := range c.Keep {
		put(at, slot(at))
	}

	p.values = make([][]byte, len(p.from))

	return p, errors.Join(errs...)
}

func sortedKeys(m map[string]Path) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}

	slices.Sort(keys)

	return keys
}

// leaf returns the node of a path, made new with those on the way.
func (p *Plan) leaf(path Path) (*node, error) {
	if path.IsRoot() {
		return nil, errors.New("the whole body cannot be changed here; name a field of it")
	}

	n, at := &p.root, Path{}

	for i, s := range path.steps {
		if n.slot >= 0 || n.remove {
			return nil, fmt.Errorf("%s is changed twice: it is part of %s", path, at)
		}

		at = at.then(s)

		k := slices.IndexFunc(n.children, func(c *node) bool { return c.step == s })
		if k >= 0 {
			n = n.children[k]

			switch {
			case i < len(path.steps)-1:
			case len(n.children) > 0:
				return nil, fmt.Errorf("%s is changed twice: it is above %s", path, n.children[0].first().path)
			default:
				return nil, fmt.Errorf("%s is changed twice", path)
			}

			continue
		}

		if len(n.children) > 0 && (n.children[0].step.index < 0) != (s.index < 0) {
			return nil, fmt.Errorf("%s is taken for a list here and for an object there", n.path)
		}

		child := &node{step: s, path: at, slot: -1}
		if s.index < 0 {
			child.quoted = string(append(AppendText(nil, s.name), ':'))
			p.names += len(child.quoted) + len(`{},`)
		}

		n.children = append(n.children, child)
		n.marks |= s.mark.bit()
		n = child
	}

	return n, nil
}

// first returns the first place below n that changes.
func (n *node) first() *node {
	for len(n.children) > 0 {
		n = n.children[0]
	}

	return n
}

// mayHave reports whether a child may be the one of a member with that mark.
func (n *node) mayHave(m mark) bool { return m == 0 || n.marks&m.bit() != 0 }

// child returns the node of a member or of the element at index.
func (n *node) child(text []byte, m *member, index int) *node {
	if index < 0 && !n.mayHave(m.mark) {
		return nil
	}

	for _, c := range n.children {
		if c.step.index == index && (index >= 0 || (m.mark == c.step.mark || m.mark == 0) && m.is(text, c.step.name)) {
			return c
		}
	}

	return nil
}

// fills reports whether a value is put at the node or below it.
func (n *node) fills(values [][]byte) bool {
	if n.slot >= 0 {
		return values[n.slot] != nil
	}

	for _, c := range n.children {
		if c.fills(values) {
			return true
		}
	}

	return false
}
