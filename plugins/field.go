package plugins

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/millrace/millrace/pipeline"
)

// Field names a part of a message: id, key, tag, topic, text (the body) or a property, as props.NAME. The zero value names
// nothing, and is empty in every message.
type Field struct {
	name string
	prop string
}

var (
	_ encoding.TextUnmarshaler = (*Field)(nil)
	_ Typed                    = Field{}
)

const fieldText = "text"

// fieldNames are the fields that are no properties.
func fieldNames() []string { return strings.Fields("id key tag topic " + fieldText) }

// ParseField returns the field of a name. It fails with a proposal.
func ParseField(text string) (Field, error) {
	if prop, ok := strings.CutPrefix(text, "props."); ok && prop != "" {
		return Field{name: "props", prop: prop}, nil
	}

	for _, name := range fieldNames() {
		if text == name {
			return Field{name: name}, nil
		}
	}

	proposal := pipeline.Suggest(text, append(fieldNames(), "props.NAME"))

	return Field{}, fmt.Errorf("%q is no field of a message; %s", text, proposal)
}

// OptionType says that it is a field.
func (Field) OptionType() (name string, values []string) { return "field", nil }

// UnmarshalText parses the name.
func (f *Field) UnmarshalText(text []byte) error {
	parsed, err := ParseField(string(text))
	if err == nil {
		*f = parsed
	}

	return err
}

// IsZero reports whether the field names nothing.
func (f Field) IsZero() bool { return f == Field{} }

// String returns the name.
func (f Field) String() string {
	if f.prop != "" {
		return f.name + "." + f.prop
	}

	return f.name
}

// Of returns the field of m; empty when m has none. The bytes of a body are copied.
func (f Field) Of(m *pipeline.Message) string {
	switch f.name {
	case "key":
		return m.Key
	case "id":
		return m.ID
	case "tag":
		return m.Tag
	case "topic":
		return m.Topic
	case fieldText:
		return string(m.Body)
	case "props":
		return m.Props[f.prop]
	default:
		return ""
	}
}
