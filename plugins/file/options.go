package file

import (
	"encoding"
	"fmt"

	"github.com/millrace/millrace/plugins"
)

// Options say where and how a [Sink] writes.
type Options struct {
	// Path is the file; it and its folder are made when they are missing. Required. Each sink needs a file of its own.
	Path string `help:"The file; it and its folder are made when they are missing." option:"path,required,main"`
	// Fsync says when the file is made safe against a power cut. The zero value is [FsyncBatch].
	Fsync Fsync `default:"batch" help:"When what is written is made safe against a power cut." option:"fsync"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Appends each body as a line to a file.",
		Example: "file: { path: out/alerts.jsonl, fsync: batch }",
	}
}

// Fsync says when written lines are forced to the disk.
type Fsync uint8

// The policies.
const (
	// FsyncBatch: before Write returns. What a job has finished survives a power cut.
	FsyncBatch Fsync = iota
	// FsyncNever: on Close only. What a job has finished survives its process, not a power cut.
	FsyncNever
)

var (
	_ encoding.TextUnmarshaler = (*Fsync)(nil)
	_ plugins.Typed            = Fsync(0)
)

// OptionType lists the policies.
func (Fsync) OptionType() (name string, values []string) { return "text", []string{"batch", "never"} }

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
