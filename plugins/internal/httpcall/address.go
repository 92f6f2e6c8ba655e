package httpcall

import (
	"encoding"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/internal/value"
)

// Address is a URL with values of a message in its path or query. The server is the same for all messages, and no value leads
// out of the segment or the parameter that it stands in.
type Address struct{ template value.Template }

var (
	_ encoding.TextUnmarshaler = (*Address)(nil)
	_ plugins.Typed            = Address{}
)

// OptionType says that it is a template.
func (Address) OptionType() (name string, values []string) { return "template", nil }

// UnmarshalText parses a URL. It fails when values stand before the end of the server's name.
func (a *Address) UnmarshalText(text []byte) error {
	t, err := value.ParseTemplate(string(text))
	if err != nil {
		return err //nolint:wrapcheck // names itself
	}

	fixed, isFixed := t.Fixed()
	if !isFixed {
		fixed = t.Prefix()
	}

	_, behind, _ := strings.Cut(fixed, "//")
	if !isFixed && !strings.ContainsAny(behind, "/?") {
		return errors.New("values can stand behind the server's name and a slash only")
	}

	u, err := url.Parse(fixed)
	if err != nil {
		return errors.New("is none; it begins with http:// or https:// and a server's name") // the cause may show a secret
	}

	if err := CheckURL(u); err != nil {
		return err
	}

	a.template = t

	return nil
}

// IsZero reports whether there is no address.
func (a Address) IsZero() bool { return a.template.IsZero() }

// IsFixed reports whether the address is the same for all messages.
func (a Address) IsFixed() bool {
	_, ok := a.template.Fixed()

	return ok
}

// String returns the text with the names in it.
func (a Address) String() string { return a.template.String() }

// Of returns the URL for a message. It fails when the message does not have a value, or when one would make a segment "." or
// "..", which servers take for a way to elsewhere.
func (a Address) Of(r *value.Reader) (string, error) {
	if text, ok := a.template.Fixed(); ok {
		return text, nil
	}

	text, err := a.template.Text(r, escape)
	if err != nil {
		return "", err //nolint:wrapcheck // names itself
	}

	path, _, _ := strings.Cut(text, "?")
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "", fmt.Errorf("a value makes the segment %q of a path", segment)
		}
	}

	return encode(text), nil
}

// encode writes what has no place in a URL, such as the space in "/a b/{key}", in percents. Values have none of that. Of a path
// that has, package net/url decodes all and forgets how it was written, so that a value with a slash would become two segments.
func encode(text string) string {
	var b strings.Builder

	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}

	return b.String()
}

// escape leaves nothing in a value that means something in a path or a query.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Headers are headers with values of a message in them.
type Headers map[string]value.Template

// Of returns the headers for a message. It fails when the message does not have a value, or when it has one that no header can
// carry.
func (h Headers) Of(r *value.Reader) (map[string]string, error) {
	all := make(map[string]string, len(h)+1)

	for name, t := range h {
		text, err := t.Text(r, nil)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}

		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			return nil, fmt.Errorf("%s: the value %.50q has a character in it that no header can carry", name, text)
		}

		all[http.CanonicalHeaderKey(name)] = text
	}

	return all, nil
}
