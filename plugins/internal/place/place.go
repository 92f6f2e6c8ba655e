// Package place has the option type by which plugins say where they put what they have found: into properties of a message or
// into its JSON body.
package place

import (
	"encoding"
	"fmt"
	"strings"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
)

// Place names where something goes: props, props.NAME, body (the JSON document) or body.PATH. The zero value is no place.
type Place struct {
	text string
	prop string
	path document.Path
}

var (
	_ encoding.TextUnmarshaler = (*Place)(nil)
	_ plugins.Typed            = Place{}
)

const (
	props = "props"
	body  = "body"
)

// Parse returns the place of a text.
func Parse(text string) (Place, error) {
	if rest, ok := strings.CutPrefix(text, props); ok && (rest == "" || rest[0] == '.' && rest != ".") {
		return Place{text: text, prop: strings.TrimPrefix(rest, ".")}, nil
	}

	if rest, ok := strings.CutPrefix(text, body); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
		path, err := document.ParsePath(rest)

		return Place{text: text, path: path}, err //nolint:wrapcheck // names the path
	}

	return Place{}, fmt.Errorf("%q is no place; it is props, props.NAME, body or body.NAME", text)
}

// OptionType says that it is a place.
func (Place) OptionType() (name string, values []string) { return "place", nil }

// UnmarshalText parses a place.
func (p *Place) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*p = parsed
	}

	return err
}

// IsZero reports whether it is no place.
func (p Place) IsZero() bool { return p.text == "" }

// String returns the text.
func (p Place) String() string { return p.text }

// InBody reports whether the place is the body or in it.
func (p Place) InBody() bool { return strings.HasPrefix(p.text, body) }

// Prop returns NAME of props.NAME; empty for props and for places in the body.
func (p Place) Prop() string { return p.prop }

// Path returns the path below the body, that to the whole of it for body and for properties.
func (p Place) Path() document.Path { return p.path }
