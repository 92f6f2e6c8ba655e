package jobfile

import "strings"

// kind is what a node of the file is.
type kind uint8

const (
	null kind = iota
	single
	list
	table
)

// node is a value of the file with its place: aliases, merges and variables are resolved. Nodes are shared by aliases and
// not changed once they are read.
type node struct {
	kind kind
	at   Place
	// value of a single one is a string, bool, int64, uint64 or float64.
	value any
	// text of a single one is how it is written, with variables replaced.
	text string
	// quoted: a single one that is in quotes or a block, and so is text whatever it looks like.
	quoted bool
	// line says that the characters of text stand in the file one by one from the place on, as they do in a plain or quoted
	// text of one line without escapes and variables.
	line bool
	// raw is how text was written where variables were replaced in it, else empty.
	raw string
	// secret: a secret was put into text.
	secret  bool
	items   []*node
	entries []entry
}

// entry is a key of a table with its value.
type entry struct {
	key   string
	at    Place
	value *node
	// merged: it comes from a merge, and gives way to a key that is written in the table itself.
	merged bool
}

// get returns the value of a key, or nil.
func (n *node) get(key string) *node {
	for _, e := range n.entries {
		if e.key == key {
			return e.value
		}
	}

	return nil
}

// is describes a node for a message that says what should be there instead.
func (n *node) is() string {
	switch n.kind {
	case null:
		return "nothing"
	case list:
		return "a list"
	case table:
		return "a table"
	case single:
	}

	shown := n.shown()
	if _, isText := n.value.(string); isText {
		return `"` + shown + `"`
	}

	return shown
}

// shown is what may be told of a single value: what is written, not what a variable has put there.
func (n *node) shown() string {
	const longest = 60

	text := n.text
	if n.raw != "" {
		text = n.raw
	}

	text, _, cut := strings.Cut(text, "\n")

	if r := []rune(text); len(r) > longest {
		return string(r[:longest]) + "…"
	}

	if cut {
		return text + "…"
	}

	return text
}
