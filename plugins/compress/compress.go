// Package compress makes bodies smaller and large again.
package compress

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options say how to compress.
type Options struct {
	// Format is the way to compress. The zero value is [Gzip].
	Format Format `default:"gzip" help:"The way to compress." option:"format,main"`
}

// Doc is what the compress plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Compresses bodies.",
		Text: "The property content-encoding says how, so that decompress and other readers know. A body whose property says " +
			"that it is compressed already is left alone.",
		Example: "compress: { format: zstd }",
		Metrics: metrics(),
	}
}

// Compressor compresses bodies. It belongs to one lane.
type Compressor struct {
	counts

	format Format
	buffer bytes.Buffer
	writer resetWriter
}

var (
	_ pipeline.Transform = (*Compressor)(nil)
	_ pipeline.Meter     = (*Compressor)(nil)
)

// resetWriter is a compressing writer that can be used again.
type resetWriter interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// New returns a compressor.
func New(o Options) (*Compressor, error) {
	c := &Compressor{format: o.Format}
	if c.format == 0 {
		c.format = Gzip
	}

	switch c.format {
	case Gzip:
		c.writer = gzip.NewWriter(io.Discard)
	case Zstd:
		w, err := zstd.NewWriter(io.Discard, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
		if err != nil {
			return nil, fmt.Errorf("compress: %w", err)
		}

		c.writer = w
	case LZ4:
		c.writer = lz4.NewWriter(io.Discard)
	default:
		return nil, fmt.Errorf("compress: there is no format %d", o.Format)
	}

	return c, nil
}

// Transform compresses the body of m and emits it.
func (c *Compressor) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if m.Props[PropEncoding] != "" {
		return emit(m)
	}

	c.buffer.Reset()
	c.writer.Reset(&c.buffer)

	if _, err := c.writer.Write(m.Body); err != nil {
		return fmt.Errorf("compress: %w", err)
	}

	if err := c.writer.Close(); err != nil {
		return fmt.Errorf("compress: %w", err)
	}

	c.add(len(m.Body), c.buffer.Len())

	m.Body = bytes.Clone(c.buffer.Bytes())
	m.SetProp(PropEncoding, c.format.String())

	return emit(m)
}
