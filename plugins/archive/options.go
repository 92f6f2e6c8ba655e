package archive

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options say how messages become one.
type Options struct {
	// Format is what the body of an archive looks like. The zero value is [Lines].
	Format Format `default:"lines" help:"What the body of the archive looks like." option:"format,main"`
}

// Doc is what the batch plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Makes one message of a whole batch.",
		Text: "The channel's batch says how many messages go into an archive. lines: the bodies, each on a line of its own. " +
			"array: the bodies, each of which must be JSON, as a JSON array. messages: all of the messages, each as a line of " +
			"JSON, so that unarchive makes the same messages of them. An archive has the id, the topic and the time of its " +
			"first message, and the key and the tag that all of its messages have in common. A message that does not fit " +
			"the format (a body of several lines, or no JSON) is rejected alone. The messages of an archive are finished when " +
			"it is.",
		Example: "batch: { format: array }",
		Metrics: metrics("made"),
	}
}

// UnarchiveOptions say how an archive becomes messages.
type UnarchiveOptions struct {
	// Format is what the body of an archive looks like. The zero value is [Lines].
	Format Format `default:"lines" help:"What the body of the archive looks like." option:"format,main"`
	// Most is how many messages an archive may have; one that has more is rejected. 0 means 100,000.
	Most int `default:"100000" help:"How many messages an archive may have; one that has more is rejected." option:"most"`
}

// Validate refuses a negative limit.
func (o *UnarchiveOptions) Validate() error {
	if o.Most < 0 {
		return errors.New("most is negative")
	}

	return nil
}

// UnarchiveDoc is what the unarchive plugin says of itself.
func UnarchiveDoc() plugins.Doc {
	return plugins.Doc{
		Summary: "Makes the messages of an archive that batch has made.",
		Text: "In the format messages, each gets its own id, key, tag, properties and time back. In the others it is a copy " +
			"of the archive with a body of its own, and the archive's id with a slash and a number from 0.",
		Example: "unarchive: { format: messages }",
		Metrics: metrics("read"),
	}
}

// Format is what the body of an archive looks like.
type Format uint8

// The formats.
const (
	// Lines: the bodies, each on a line of its own.
	Lines Format = iota
	// Array: the bodies as the elements of a JSON array.
	Array
	// Messages: all of the messages, each as a line of JSON.
	Messages
)

var (
	_ encoding.TextUnmarshaler = (*Format)(nil)
	_ plugins.Typed            = Format(0)
)

func formats() []string { return []string{"lines", "array", "messages"} }

// OptionType lists the formats.
func (Format) OptionType() (name string, values []string) { return "text", formats() }

// UnmarshalText parses the name.
func (f *Format) UnmarshalText(text []byte) error {
	for i, name := range formats() {
		if name == string(text) {
			*f = Format(i)

			return nil
		}
	}

	return fmt.Errorf("%q is no format; %s", text, pipeline.Suggest(string(text), formats()))
}
