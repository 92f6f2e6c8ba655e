package jobfile

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// decoder makes jobs of nodes and collects what is wrong with them.
type decoder struct {
	*reader

	registry *plugins.Registry
	// values counts what options hold, aliases each time.
	values int
}

// fields are the keys of a table that a part of the file may have.
type fields struct {
	*decoder

	node *node
	// what names the part in messages.
	what string
	// broken: it is no table.
	broken bool
}

// fields looks at a table, and reports keys that are not known. Anything but a table is a mistake and gives no fields.
func (d *decoder) fields(n *node, what string, known ...string) fields {
	f := fields{decoder: d, node: n, what: what}

	if n.kind != table {
		d.mistakef(n.at, "%s is %s; it should be a table with some of: %s", what, n.is(), strings.Join(known, ", "))

		f.node, f.broken = &node{kind: table, at: n.at}, true

		return f
	}

	for _, e := range n.entries {
		if !slices.Contains(known, e.key) {
			d.mistakef(e.at, "unknown key %q in %s; %s", e.key, what, pipeline.Suggest(e.key, known))
		}
	}

	return f
}

// missing reports whether a table lacks a key, also under a name that is a slip for it, which has been reported.
func (f fields) missing(key string) bool {
	return f.node.kind == table && !f.broken && !slices.ContainsFunc(f.node.entries, func(e entry) bool {
		return e.key == key || strings.HasPrefix(pipeline.Suggest(e.key, []string{key}), "did you mean")
	})
}

// get returns the value of a key, nil when it is not there. One without a value is a mistake.
func (f fields) get(key string) *node {
	n := f.node.get(key)
	if n != nil && n.kind == null {
		f.mistakef(n.at, "%s of %s has no value; give it one or remove the key", key, f.what)

		return nil
	}

	return n
}

// text returns the text of a key; empty when it is not there.
func (f fields) text(key string) string {
	n := f.get(key)
	if n == nil {
		return ""
	}

	return f.textOf(n, key)
}

func (d *decoder) textOf(n *node, what string) string {
	switch {
	case n.kind != single:
		d.mistakef(n.at, "%s is %s; it should be a text", what, n.is())
	case n.text == "":
		d.mistakef(n.at, "%s is empty; give it a text or remove it", what)
	}

	return n.text
}

// texts returns the texts of a key that holds one or a list of them.
func (f fields) texts(key string) []string {
	n := f.get(key)
	if n == nil {
		return nil
	}

	if n.kind != list {
		return []string{f.textOf(n, key)}
	}

	texts := make([]string, len(n.items))
	for i, item := range n.items {
		texts[i] = f.textOf(item, key)
	}

	return texts
}

// integer returns the whole number of a key, which is from lowest to highest; 0 when it is not there.
func (f fields) integer(key string, lowest, highest int) int {
	n := f.get(key)
	if n == nil {
		return 0
	}

	return f.integerOf(n, key, lowest, highest)
}

func (d *decoder) integerOf(n *node, what string, lowest, highest int) int {
	i, err := strconv.Atoi(n.text)

	switch {
	case n.kind != single || err != nil || n.quoted && n.raw == "":
		d.mistakef(n.at, "%s is %s; it should be a whole number", what, n.is())
	case i < lowest || i > highest:
		d.mistakef(n.at, "%s is %s; it should be %d to %d", what, n.shown(), lowest, highest)
	default:
		return i
	}

	return 0
}

// truth returns the truth value of a key; false when it is not there.
func (f fields) truth(key string) bool {
	n := f.get(key)
	if n == nil {
		return false
	}

	if n.kind != single || n.text != isTrue && n.text != isFalse {
		f.mistakef(n.at, "%s is %s; it should be true or false", key, n.is())
	}

	return n.text == isTrue
}

// duration returns the duration of a key, more than 0; 0 when it is not there.
func (f fields) duration(key string) time.Duration {
	n := f.get(key)
	if n == nil {
		return 0
	}

	return f.durationOf(n, key)
}

func (d *decoder) durationOf(n *node, what string) time.Duration {
	var duration plugins.Duration

	if n.kind != single || duration.UnmarshalText([]byte(n.text)) != nil {
		d.mistakef(n.at, "%s is %s; it should be a number with a unit, such as 200ms, 2s or 1h30m", what, n.is())
	} else if duration == 0 {
		d.mistakef(n.at, "%s is 0; use a time above it, or leave it out for the default", what)
	}

	return time.Duration(duration)
}

// durations returns the durations of a key that holds one or a list of them.
func (f fields) durations(key string) []time.Duration {
	n := f.get(key)

	switch {
	case n == nil:
		return nil
	case n.kind != list:
		return []time.Duration{f.durationOf(n, key)}
	}

	durations := make([]time.Duration, len(n.items))
	for i, item := range n.items {
		durations[i] = f.durationOf(item, key)
	}

	return durations
}

// size returns the number of bytes of a key, more than 0; 0 when it is not there.
func (f fields) size(key string) int64 {
	n := f.get(key)
	if n == nil {
		return 0
	}

	var size plugins.Size

	if n.kind != single || size.UnmarshalText([]byte(n.text)) != nil {
		f.mistakef(n.at, "%s is %s; it should be a number of bytes, with a unit such as 64KiB or 1MiB", key, n.is())
	} else if size == 0 {
		f.mistakef(n.at, "%s is 0; use a size above it, or leave it out for no limit", key)
	}

	return int64(size)
}

// oneOf returns the text of a key, which is one of some values; empty when it is not there or another.
func (f fields) oneOf(key string, values ...string) string {
	n := f.get(key)
	if n == nil {
		return ""
	}

	if n.kind == single && slices.Contains(values, n.text) {
		return n.text
	}

	f.mistakef(n.at, "%s is %s; it should be %s", key, n.is(), either(values))

	return ""
}

// either lists values as "a, b or c".
func either(values []string) string {
	if len(values) == 1 {
		return values[0]
	}

	last := len(values) - 1

	return strings.Join(values[:last], ", ") + " or " + values[last]
}
