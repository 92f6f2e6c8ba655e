package split

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/millrace/millrace/plugins"
)

// Options say how a [Transform] cuts a body.
type Options struct {
	// By says what a piece is. The zero value is [Elements].
	By By `default:"elements" help:"What becomes a message of its own: the elements of a JSON array, or lines." option:"by,main"`
	// Most is how many pieces a message may have; one that has more is rejected. 0 means 100,000.
	Most int `default:"100000" help:"How many pieces a message may have; one that has more is rejected." option:"most"`
}

// Validate refuses a negative limit.
func (o *Options) Validate() error {
	if o.Most < 0 {
		return errors.New("most is negative")
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Makes many messages of one: one of each element of a JSON array, or of each line.",
		Text: "Each piece is a copy of the message with a body of its own. Its id is that of the message, a slash and the " +
			"number of the piece, from 0. Empty lines are left out, and so is the line break at the end of a line. The " +
			"message is finished when all of its pieces are; one that is no JSON array, or has too many pieces, is " +
			"rejected.",
		Example: "split: { by: lines }",
		Metrics: []plugins.Metric{{Name: "pieces", Help: "Messages made."}},
	}
}

// By says what a body is cut into.
type By uint8

// What a body can be cut into.
const (
	// Elements: the elements of a JSON array.
	Elements By = iota
	// Lines: what stands between line breaks, empty lines left out.
	Lines
)

var (
	_ encoding.TextUnmarshaler = (*By)(nil)
	_ plugins.Typed            = By(0)
)

// OptionType lists what a body can be cut into.
func (By) OptionType() (name string, values []string) { return "text", []string{"elements", "lines"} }

// UnmarshalText parses elements or lines.
func (b *By) UnmarshalText(text []byte) error {
	switch string(text) {
	case "elements":
		*b = Elements
	case "lines":
		*b = Lines
	default:
		return fmt.Errorf("%q is neither elements nor lines", text)
	}

	return nil
}
