package compress

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// DecompressOptions say how to decompress.
type DecompressOptions struct {
	// Format is the way that bodies are compressed. The zero value is what the property content-encoding says; a message
	// without the property is left alone then.
	Format Format `help:"How bodies are compressed; without it, as the property content-encoding says." option:"format,main"`
	// Limit is how large a body may become; a larger one is rejected. 0 means 64 MiB.
	Limit plugins.Size `default:"64MiB" help:"How large a body may become; a larger one is rejected." option:"limit"`
}

// DecompressDoc is what the decompress plugin says of itself.
func DecompressDoc() plugins.Doc {
	return plugins.Doc{
		Summary: "Decompresses bodies.",
		Text: "A body that is broken, cut off, in another format or larger than the limit is rejected; of the last one, no " +
			"more than the limit is ever in memory. The property content-encoding is taken off.",
		Example: "decompress: { limit: 8MiB }",
		Metrics: metrics(),
	}
}

// Decompressor decompresses bodies. It belongs to one lane.
type Decompressor struct {
	counts

	format Format
	limit  int64
	gzip   gzip.Reader
	zstd   *zstd.Decoder
	lz4    *lz4.Reader
}

var (
	_ pipeline.Transform = (*Decompressor)(nil)
	_ pipeline.Meter     = (*Decompressor)(nil)
	_ io.Closer          = (*Decompressor)(nil)
)

// NewDecompressor returns a decompressor.
func NewDecompressor(o DecompressOptions) (*Decompressor, error) {
	if o.Format > LZ4 {
		return nil, fmt.Errorf("decompress: there is no format %d", o.Format)
	}

	if o.Limit == 0 {
		o.Limit = 64 << 20
	}

	if o.Limit < 0 || o.Limit > math.MaxInt32 {
		return nil, errors.New("decompress: the limit is not between 1 B and 2 GiB")
	}

	// The window is what the decoder keeps of what it has written, and a frame chooses it. Every decoder is asked to take 8 MiB.
	window := min(max(uint64(o.Limit), 8<<20), 64<<20)

	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}

	return &Decompressor{format: o.Format, limit: int64(o.Limit), zstd: z, lz4: lz4.NewReader(nil)}, nil
}

// Transform decompresses the body of m and emits it.
func (d *Decompressor) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	format := d.format
	named := m.Props[PropEncoding]

	if format == 0 {
		if named == "" {
			return emit(m)
		}

		if err := format.UnmarshalText([]byte(named)); err != nil {
			return pipeline.Reject(fmt.Errorf("decompress: the property %s: %w", PropEncoding, err))
		}
	}

	body, err := d.decompress(ctx, format, m.Body)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("decompress: %w", ctx.Err())
		}

		return pipeline.Reject(fmt.Errorf("decompress: %s: %w", format, err))
	}

	d.add(len(m.Body), len(body))

	m.Body = body
	if named != "" {
		m.Props = maps.Clone(m.Props)
		delete(m.Props, PropEncoding)
	}

	return emit(m)
}

func (d *Decompressor) decompress(ctx context.Context, format Format, body []byte) ([]byte, error) {
	from, err := d.reader(format, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	var out bytes.Buffer

	// In steps, so that a large body heeds the context.
	for {
		const step = 1 << 20

		if err := ctx.Err(); err != nil {
			return nil, err
		}

		room := d.limit + 1 - int64(out.Len())

		_, err := io.CopyN(&out, from, min(step, room))
		if int64(out.Len()) > d.limit {
			return nil, fmt.Errorf("becomes larger than %d bytes; the option limit allows more", d.limit)
		}

		if errors.Is(err, io.EOF) {
			return out.Bytes(), nil
		}

		if err != nil {
			return nil, err //nolint:wrapcheck // the caller puts the place around it
		}
	}
}

func (d *Decompressor) reader(format Format, from *bytes.Reader) (io.Reader, error) {
	if from.Len() == 0 {
		return nil, io.ErrUnexpectedEOF
	}

	switch format {
	case Gzip:
		return &d.gzip, d.gzip.Reset(from) //nolint:wrapcheck // the caller puts the place around it
	case Zstd:
		return d.zstd, d.zstd.Reset(from) //nolint:wrapcheck // the caller puts the place around it
	case LZ4:
		d.lz4.Reset(from)

		return d.lz4, nil
	default:
		return nil, errors.New("is no format")
	}
}

// Close frees what the decoders hold. It never fails.
func (d *Decompressor) Close() error {
	d.zstd.Close()

	return nil
}
