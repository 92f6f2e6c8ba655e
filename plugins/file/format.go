package file

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/plugins"
)

// ErrNotALine is why a message is rejected whose body has a line break in it, or is not what [Format] asks for.
var ErrNotALine = errors.New("file: the body is not one line")

// errNotJSON is an [ErrNotALine] for JSON.
var errNotJSON = fmt.Errorf("%w of JSON; set format: text where lines are any text", ErrNotALine)

// Format is what lines hold.
type Format uint8

// The formats.
const (
	// FormatJSON: each a JSON document.
	FormatJSON Format = iota
	// FormatText: anything.
	FormatText
)

var (
	_ encoding.TextUnmarshaler = (*Format)(nil)
	_ plugins.Typed            = Format(0)
)

// OptionType lists the formats.
func (Format) OptionType() (name string, values []string) {
	return optionType, []string{"json", "text"}
}

// UnmarshalText parses json or text.
func (f *Format) UnmarshalText(text []byte) error {
	switch string(text) {
	case "json":
		*f = FormatJSON
	case "text":
		*f = FormatText
	default:
		return fmt.Errorf("%q is neither json nor text", text)
	}

	return nil
}

// check fails with [ErrNotALine] for a body that makes no line.
func (f Format) check(body []byte) error {
	broken := bytes.IndexByte(body, '\n') >= 0

	switch {
	case f == FormatJSON && (broken || !json.Valid(body)):
		return errNotJSON
	case broken:
		return ErrNotALine
	default:
		return nil
	}
}
