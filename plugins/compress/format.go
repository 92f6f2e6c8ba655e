package compress

import (
	"encoding"
	"fmt"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// PropEncoding is the property that says how a body is compressed: the name of a [Format].
const PropEncoding = "content-encoding"

// Format is a way to compress.
type Format uint8

// The formats. The zero value is none of them: compress takes Gzip for it, and decompress what [PropEncoding] says.
const (
	// Gzip: smaller than LZ4, slower than Zstd, and read by everything.
	Gzip Format = iota + 1
	// Zstd: small and fast.
	Zstd
	// LZ4: the fastest, in its frame format.
	LZ4
)

var (
	_ encoding.TextUnmarshaler = (*Format)(nil)
	_ plugins.Typed            = Format(0)
)

func formats() []string { return []string{"gzip", "zstd", "lz4"} }

// OptionType lists the formats.
func (Format) OptionType() (name string, values []string) { return "text", formats() }

// UnmarshalText parses the name.
func (f *Format) UnmarshalText(text []byte) error {
	for i, name := range formats() {
		if name == string(text) {
			*f = Format(i + 1)

			return nil
		}
	}

	return fmt.Errorf("%q is no format; %s", text, pipeline.Suggest(string(text), formats()))
}

// String returns the name.
func (f Format) String() string {
	if f == 0 || f > LZ4 {
		return ""
	}

	return formats()[f-1]
}
