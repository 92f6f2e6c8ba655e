package plugins

import "encoding"

// Secret is an option that holds a password, a token or an address with one in it. It prints as stars however it is
// printed, so that it ends up in no log and in no error; only [Secret.Reveal] returns it. The zero value holds nothing.
type Secret struct{ text string }

var (
	_ encoding.TextUnmarshaler = (*Secret)(nil)
	_ encoding.TextMarshaler   = Secret{}
	_ Typed                    = Secret{}
)

// NewSecret returns a secret that holds text.
func NewSecret(text string) Secret { return Secret{text} }

// OptionType says that it is a secret.
func (Secret) OptionType() (name string, values []string) { return "secret", nil }

// UnmarshalText takes every text.
func (s *Secret) UnmarshalText(text []byte) error {
	s.text = string(text)

	return nil
}

// MarshalText hides the text, as String does.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String returns stars, or nothing for a secret that holds nothing.
func (s Secret) String() string {
	if s.text == "" {
		return ""
	}

	return "***"
}

// GoString hides the text also from %#v.
func (s Secret) GoString() string { return "plugins.Secret(" + s.String() + ")" }

// Reveal returns the text. It belongs where the text is used, and into no error.
func (s Secret) Reveal() string { return s.text }
