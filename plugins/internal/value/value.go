// Package value has the option types by which plugins take values from messages: a name such as key or body.user.name, and a
// text with names in it, such as "{topic}/{key}".
package value

import (
	"encoding"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
)

// Value names a part of a message: id, key, tag, topic, text (the body as text), props.NAME, born (RFC 3339), delivery, month,
// day and hour (of born, in UTC), body (the JSON document) and what is in it: body.user.name, body.list[0], body["a name"].
// The zero value names nothing and is nil in every message.
type Value struct {
	text  string
	field plugins.Field
	path  document.Path // in the body
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
		if v.path, err = document.ParsePath(rest); err != nil {
			return Value{}, err //nolint:wrapcheck // names the path
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
