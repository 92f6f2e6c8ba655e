package value

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/millrace/millrace/plugins"
)

// Template is a text with the names of values in braces, such as "quakes/{day}/{body.region}"; {{ and }} stand for braces. The
// zero value is the empty text.
type Template struct {
	text  string
	parts []part
}

// part is a text, and the value behind it, if any.
type part struct {
	text  string
	value Value
}

var (
	_ encoding.TextUnmarshaler = (*Template)(nil)
	_ plugins.Typed            = Template{}
)

// ParseTemplate returns the template of a text. It fails for unknown names and for braces without a partner.
func ParseTemplate(text string) (Template, error) {
	t := Template{text: text}

	var plain strings.Builder

	for rest := text; rest != ""; {
		switch {
		case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
			plain.WriteByte(rest[0])
			rest = rest[2:]
		case rest[0] == '{':
			name, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return Template{}, fmt.Errorf("%q is not closed; a brace itself is written {{", rest)
			}

			v, err := Parse(strings.TrimSpace(name))
			if err != nil {
				return Template{}, err
			}

			t.parts = append(t.parts, part{text: plain.String(), value: v})
			plain.Reset()

			rest = after
		case rest[0] == '}':
			return Template{}, fmt.Errorf("%q has a brace that closes nothing; a brace itself is written }}", text)
		default:
			plain.WriteByte(rest[0])
			rest = rest[1:]
		}
	}

	t.parts = append(t.parts, part{text: plain.String()})

	return t, nil
}

// OptionType says that it is a template.
func (Template) OptionType() (name string, values []string) { return "template", nil }

// UnmarshalText parses the text.
func (t *Template) UnmarshalText(text []byte) error {
	parsed, err := ParseTemplate(string(text))
	if err == nil {
		*t = parsed
	}

	return err
}

// IsZero reports whether the template is the empty text.
func (t Template) IsZero() bool { return t.text == "" }

// String returns the text with the names in it.
func (t Template) String() string { return t.text }

// Fixed returns the text, and whether it is the same for all messages.
func (t Template) Fixed() (string, bool) {
	switch len(t.parts) {
	case 0:
		return "", true
	case 1:
		return t.parts[0].text, true
	default:
		return "", false
	}
}

// Prefix returns what the text of every message begins with.
func (t Template) Prefix() string {
	if len(t.parts) == 0 {
		return ""
	}

	return t.parts[0].text
}

// Text returns the text with the values of a message in it, each passed through escape when that is not nil. It fails with
// [ErrMissing] when the message does not have one of them.
func (t Template) Text(r *Reader, escape func(string) string) (string, error) {
	if text, ok := t.Fixed(); ok {
		return text, nil
	}

	var b strings.Builder

	for _, p := range t.parts {
		b.WriteString(p.text)

		if p.value.IsZero() {
			continue
		}

		text, err := r.Text(p.value)
		if err != nil {
			return "", err
		}

		if escape != nil {
			text = escape(text)
		}

		b.WriteString(text)
	}

	return b.String(), nil
}
