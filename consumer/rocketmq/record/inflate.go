package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// inflater makes bodies large again. It belongs to one goroutine at a time.
type inflater struct {
	from bytes.Reader
	zlib io.ReadCloser
	lz4  *lz4.Reader
	zstd *zstd.Decoder
}

// inflate returns a body without its compression.
func (d *Decoder) inflate(body []byte, kind int32) ([]byte, error) {
	if len(body) == 0 {
		return nil, errors.New("its compressed body is empty")
	}

	i, _ := d.inflaters.Get().(*inflater)
	i.from.Reset(body)

	defer func() {
		i.from.Reset(nil)
		d.inflaters.Put(i)
	}()

	reader, err := i.reader(kind, d.limits.Body)
	if err != nil {
		return nil, fmt.Errorf("its compressed body: %w", err)
	}

	var out bytes.Buffer

	out.Grow(min(4*len(body), d.limits.Body) + bytes.MinRead)

	if _, err := out.ReadFrom(io.LimitReader(reader, int64(d.limits.Body)+1)); err != nil {
		return nil, fmt.Errorf("its compressed body: %w", err)
	}

	if out.Len() > d.limits.Body {
		return nil, fmt.Errorf("%w: its body becomes more than %d bytes; a higher limit lets it pass", ErrTooLarge, d.limits.Body)
	}

	return out.Bytes(), nil
}

// reader returns what reads the body that lies in from.
func (i *inflater) reader(kind int32, limit int) (io.Reader, error) {
	switch kind {
	case kindOld, int32(Zlib):
		if i.zlib == nil {
			return i.newZlib()
		}

		return i.zlib, i.zlib.(zlib.Resetter).Reset(&i.from, nil) //nolint:forcetypeassert,wrapcheck // all are one
	case int32(LZ4):
		if i.lz4 == nil {
			i.lz4 = lz4.NewReader(nil)
		}

		i.lz4.Reset(&i.from)

		return i.lz4, nil
	case int32(Zstd):
		if i.zstd == nil {
			return i.newZstd(limit)
		}

		return i.zstd, i.zstd.Reset(&i.from) //nolint:wrapcheck // inflate does
	default:
		return nil, fmt.Errorf("there is no compression %d", kind)
	}
}

func (i *inflater) newZlib() (io.Reader, error) {
	reader, err := zlib.NewReader(&i.from)
	if err != nil {
		return nil, err //nolint:wrapcheck // inflate does
	}

	i.zlib = reader

	return reader, nil
}

// newZstd makes the decoder without goroutines, so that nobody has to close it.
func (i *inflater) newZstd(limit int) (io.Reader, error) {
	// The window is what the decoder keeps of what it has written, and a frame chooses it. Every decoder is asked to take 8 MiB.
	window := min(max(uint64(limit), 8<<20), 64<<20)

	reader, err := zstd.NewReader(&i.from, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window))
	if err != nil {
		return nil, err //nolint:wrapcheck // inflate does
	}

	i.zstd = reader

	return reader, nil
}
