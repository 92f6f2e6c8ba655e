package file

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/millrace/millrace/plugins"
)

// Options say where and how a [Sink] writes.
type Options struct {
	// Path is the file; it and its folder are made when they are missing. Required. Names of values in braces, such as
	// {key}, {day} or {body.region}, make it a file for each text that messages have there. No two sinks may share a file.
	Path string `help:"The file, made when it is missing; values of the message in braces." option:"path,required,main"`
	// Format is what lines hold. The zero value is [FormatJSON].
	Format Format `default:"json" help:"What a body must be: one line of JSON, or one line of any text." option:"format"`
	// MaxOpen is how many files are open at a time, where messages name them; the one not used for longest is closed for
	// another one. The zero value is 64.
	MaxOpen int `default:"64" help:"How many files are open at a time, where messages name them." option:"max_open"`
	// Fsync says when the file is made safe against a power cut. The zero value is [FsyncBatch].
	Fsync Fsync `default:"batch" help:"When what is written is made safe against a power cut." option:"fsync"`
	// Rotate says when a file is put aside and a new one begun. The zero value never does.
	Rotate Rotate `help:"When a file is put aside and a new one begun." option:"rotate"`
	// Compress says how a file is packed that was put aside. The zero value leaves it as it is.
	Compress Compress `default:"none" help:"How a file that was put aside is packed." option:"compress"`
}

// Rotate says when a file is put aside; whichever comes first. The zero value is never.
type Rotate struct {
	// Size is how large a file may get, in bytes. A batch is never divided: a larger one has a file for itself.
	Size plugins.Size `help:"The largest size of a file; a larger batch has one for itself." option:"size"`
	// Every divides time into spans, counted from midnight UTC, each with a file of its own. A file is put aside when the next
	// line is written, so the last one stays where it is while nothing comes.
	Every plugins.Duration `help:"The span of time that a file covers, such as 1h: full hours in UTC." option:"every"`
}

var _ plugins.Validator = Options{}

// Validate refuses names that nobody knows, and what would pack nothing.
func (o Options) Validate() error {
	if _, err := newNamer(o); err != nil {
		return fmt.Errorf("path: %w", err)
	}

	if o.MaxOpen < 0 {
		return errors.New("max_open: is negative")
	}

	if o.Compress != CompressNone && o.Rotate == (Rotate{}) {
		return errors.New("compress: packs files that were put aside, and rotate says of none; set rotate.size or rotate.every")
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Appends each body as a line to a file.",
		Text: "A body must be one line of valid JSON, or with format: text any line; others are rejected. Lines are never " +
			"torn: what a crash has left of a line is cut off when the file is opened again.\n\n" +
			"With values in its path a message names its file. They make parts of names and never lead to another folder: " +
			"what separates or hides names is written as %2F. A message without such a value, an empty or a very long one, is " +
			"rejected. How many files there get to be is up to the messages.\n\n" +
			"A file that was put aside has the time in its name: alerts.jsonl becomes alerts-20261231T235959.jsonl, and with " +
			"an ending of .gz or .zst once it is packed. Packing goes on beside the writing; what a crash has interrupted is " +
			"packed when the file is opened again.",
		Example: "file: { path: 'out/{topic}/alerts.jsonl', fsync: batch, rotate: { size: 64MiB, every: 24h }, compress: zstd }",
		Metrics: []plugins.Metric{
			{Name: "lines", Help: "Lines written for good."},
			{Name: "bytes", Help: "Bytes of these lines."},
			{Name: "torn", Help: "Bytes of unfinished last lines that were cut off."},
			{Name: "rotated", Help: "Files put aside."},
			{Name: "compressed", Help: "Files packed."},
			{Name: "opened", Help: "Times that a file was opened; many mean that max_open is small."},
		},
	}
}

// optionType is what options that take one of some words are said to take.
const optionType = "text"

// Fsync says when written lines are forced to the disk.
type Fsync uint8

// The policies.
const (
	// FsyncBatch: before Write returns. What a job has finished survives a power cut.
	FsyncBatch Fsync = iota
	// FsyncNever: when a file is closed only. What a job has finished survives its process, not a power cut.
	FsyncNever
)

var (
	_ encoding.TextUnmarshaler = (*Fsync)(nil)
	_ plugins.Typed            = Fsync(0)
)

// OptionType lists the policies.
func (Fsync) OptionType() (name string, values []string) {
	return optionType, []string{"batch", "never"}
}

// UnmarshalText parses batch or never.
func (f *Fsync) UnmarshalText(text []byte) error {
	switch string(text) {
	case "batch":
		*f = FsyncBatch
	case "never":
		*f = FsyncNever
	default:
		return fmt.Errorf("%q is neither batch nor never", text)
	}

	return nil
}

// Compress says how a file is packed.
type Compress uint8

// The ways to pack.
const (
	// CompressNone: not at all.
	CompressNone Compress = iota
	// CompressGzip: as gzip does, which everybody can read.
	CompressGzip
	// CompressZstd: as zstd does, which is several times faster and packs better.
	CompressZstd
)

var (
	_ encoding.TextUnmarshaler = (*Compress)(nil)
	_ plugins.Typed            = Compress(0)
)

// OptionType lists the ways to pack.
func (Compress) OptionType() (name string, values []string) {
	return optionType, []string{"none", "gzip", "zstd"}
}

// UnmarshalText parses none, gzip or zstd.
func (c *Compress) UnmarshalText(text []byte) error {
	switch string(text) {
	case "none":
		*c = CompressNone
	case "gzip":
		*c = CompressGzip
	case "zstd":
		*c = CompressZstd
	default:
		return fmt.Errorf("%q is none of none, gzip and zstd", text)
	}

	return nil
}

// ending is what the name of a packed file ends in.
func (c Compress) ending() string {
	switch c {
	case CompressGzip:
		return ".gz"
	case CompressZstd:
		return ".zst"
	case CompressNone:
		return ""
	default:
		return ""
	}
}
