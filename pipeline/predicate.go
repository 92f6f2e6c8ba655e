package pipeline

import (
	"slices"
	"strings"
)

// Tagged picks messages that have one of the tags, for [Route].When and [Filter].
func Tagged(tags ...string) func(*Message) bool {
	return func(m *Message) bool { return slices.Contains(tags, m.Tag) }
}

// KeyPrefixed picks messages whose key begins with prefix, for [Route].When and [Filter].
func KeyPrefixed(prefix string) func(*Message) bool {
	return func(m *Message) bool { return strings.HasPrefix(m.Key, prefix) }
}

// PropIs picks messages that have the property with one of the values, for [Route].When and [Filter].
func PropIs(name string, values ...string) func(*Message) bool {
	return func(m *Message) bool {
		value, ok := m.Props[name]

		return ok && slices.Contains(values, value)
	}
}
