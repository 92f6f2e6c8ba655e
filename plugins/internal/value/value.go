// Package value has the option types by which plugins take values from messages: a name such as key or body.user.name, and a
// text with names in it, such as "{topic}/{key}".
package value

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Value names a part of a message: id, key, tag, topic, text (the body as text), props.NAME, born (RFC 3339), delivery, month,
// day and hour (of born, in UTC), body (the JSON document) and what is in it: body.user.name, body.list[0], body["a name"].
// The zero value names nothing and is nil in every message.
type Value struct {
	text  string
	field plugins.Field
	path  []step // in the body
}

// step is a name in an object or an index in a list.
type step struct {
	name  string
	index int // -1 for a name
}

var (
	_ encoding.TextUnmarshaler = (*Value)(nil)
	_ plugins.Typed            = Value{}
)

// ErrMissing is why a text cannot be made: a message does not have what the text names.
var ErrMissing = errors.New("the message does not have it")

const body = "body"

// names are those beside the fields of [plugins.Field].
func names() []string { return []string{"born", "delivery", "month", "day", "hour", body} }

// Parse returns the value of a name. It fails with a proposal.
func Parse(text string) (Value, error) {
	v := Value{text: text}

	if slices.Contains(names(), text) {
		return v, nil
	}

	if rest, ok := strings.CutPrefix(text, body); ok && (rest[0] == '.' || rest[0] == '[') {
		var err error
		if v.path, err = parsePath(rest); err != nil {
			return Value{}, fmt.Errorf("%q: %w", text, err)
		}

		return v, nil
	}

	field, err := plugins.ParseField(text)
	if err == nil {
		v.field = field

		return v, nil
	}

	known := append([]string{"id", "key", "tag", "topic", "text", "props.NAME"}, names()...)

	return Value{}, fmt.Errorf("unknown name %q; %s; the fields of the body are reached as body.%s",
		text, pipeline.Suggest(text, known), text)
}

// parsePath parses .name, [0] and ["name"], any number of them.
func parsePath(text string) ([]step, error) {
	var path []step

	for text != "" {
		var s step

		switch {
		case text[0] == '.':
			end := strings.IndexAny(text[1:], ".[")
			if end < 0 {
				end = len(text) - 1
			}

			s, text = step{name: text[1 : end+1], index: -1}, text[end+1:]
			if s.name == "" {
				return nil, errors.New("there is no name behind a dot")
			}
		case strings.HasPrefix(text, `["`):
			quoted, err := strconv.QuotedPrefix(text[1:])
			if err != nil || !strings.HasPrefix(text[1+len(quoted):], "]") {
				return nil, errors.New(`["NAME"] is not closed`)
			}

			name, _ := strconv.Unquote(quoted)
			s, text = step{name: name, index: -1}, text[len(quoted)+2:]
		default:
			inner, rest, closed := strings.Cut(text, "]")

			n, err := strconv.ParseUint(strings.TrimPrefix(inner, "["), 10, 31)
			if !closed || err != nil || inner[0] != '[' {
				return nil, fmt.Errorf("%s is no step; there are .NAME, [0] and [\"NAME\"]", text)
			}

			s, text = step{index: int(n)}, rest
		}

		path = append(path, s)
	}

	return path, nil
}

// OptionType says that it is a value of a message.
func (Value) OptionType() (name string, values []string) { return "value", nil }

// UnmarshalText parses the name.
func (v *Value) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*v = parsed
	}

	return err
}

// IsZero reports whether the value names nothing.
func (v Value) IsZero() bool { return v.text == "" }

// String returns the name.
func (v Value) String() string { return v.text }
