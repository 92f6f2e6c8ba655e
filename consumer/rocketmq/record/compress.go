package record

import (
	"bytes"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// Compression is a way to make bodies smaller, numbered as in the flags of a record.
type Compression uint8

// The ways to compress. Brokers do not look at bodies. Every reader knows Zlib, those from 5.0 on all of them.
const (
	LZ4  Compression = 1
	Zstd Compression = 2
	Zlib Compression = 3

	kindOld = 0 // how clients before 5.0 mark zlib
)

// SysFlag returns the bits that say of a body that it is compressed this way.
func (c Compression) SysFlag() int32 { return flagCompressed | int32(c)<<kindShift }

// Compressor compresses bodies. It is safe for concurrent use.
type Compressor struct {
	writers sync.Pool // of writer
}

// writer is a compressing writer that can be used again.
type writer interface {
	io.WriteCloser
	Reset(to io.Writer)
}

// NewCompressor returns a compressor of one kind.
func NewCompressor(kind Compression) (*Compressor, error) {
	var create func() any

	switch kind {
	case Zlib:
		create = func() any { return zlib.NewWriter(io.Discard) }
	case LZ4:
		create = func() any { return lz4.NewWriter(io.Discard) }
	case Zstd:
		create = func() any {
			// Without goroutines, so that nobody has to close it. These options are never refused.
			w, _ := zstd.NewWriter(io.Discard, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))

			return w
		}
	default:
		return nil, fmt.Errorf("record: there is no compression %d", kind)
	}

	return &Compressor{writers: sync.Pool{New: create}}, nil
}

// Compress returns a body compressed.
func (c *Compressor) Compress(body []byte) ([]byte, error) {
	w, _ := c.writers.Get().(writer)

	var out bytes.Buffer

	w.Reset(&out)

	defer func() {
		w.Reset(io.Discard)
		c.writers.Put(w)
	}()

	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}

	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}

	return out.Bytes(), nil
}
