package file

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/klauspost/compress/zstd"
	"go.uber.org/zap"
)

// packer packs files one after the other, beside the writing. It runs a goroutine while there is something to pack.
type packer struct {
	how Compress
	log *zap.Logger

	mu      sync.Mutex // guards what is below
	waiting []string
	packed  int64
	running bool
	idle    sync.WaitGroup // done while nothing is running
}

// add has files packed that are not waiting for it already. An error is logged: the file is as good as it is.
func (p *packer) add(paths ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, path := range paths {
		if !slices.Contains(p.waiting, path) {
			p.waiting = append(p.waiting, path)
		}
	}

	if len(p.waiting) > 0 && !p.running {
		p.running = true
		p.idle.Go(p.run)
	}
}

func (p *packer) run() {
	for {
		p.mu.Lock()
		if len(p.waiting) == 0 {
			p.running = false
			p.mu.Unlock()

			return
		}

		path := p.waiting[0] // it stays in the list while it is packed, so that nobody adds it again
		p.mu.Unlock()

		err := pack(path, p.how)

		p.mu.Lock()
		p.waiting = p.waiting[1:]

		if err == nil {
			p.packed++
		}
		p.mu.Unlock()

		if err != nil {
			p.log.Warn("a file that was put aside cannot be packed and stays as it is", zap.String("path", path), zap.Error(err))
		}
	}
}

// wait returns when everything is packed.
func (p *packer) wait() { p.idle.Wait() }

func (p *packer) count() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.packed
}

// pack replaces a file by a packed one. At any moment, one of them is there and complete.
func pack(path string, how Compress) error {
	in, err := os.Open(path) //nolint:gosec // our own file
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}
	defer func() { _ = in.Close() }()

	target := path + how.ending()
	draft := target + ".tmp"

	out, err := os.OpenFile(draft, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644) //nolint:gosec // as the file itself
	if err != nil {
		return fmt.Errorf("file: %w", err)
	}

	if err = writePacked(out, in, how); err == nil {
		err = os.Rename(draft, target)
	}

	if err != nil {
		return fmt.Errorf("file: packing: %w", errors.Join(err, os.Remove(draft)))
	}

	if err := errors.Join(syncFolder(filepath.Dir(path)), os.Remove(path)); err != nil {
		return fmt.Errorf("file: packing: %w", err)
	}

	return nil
}

// writePacked writes out whole and closes it. Without an error, a power cut takes nothing of it.
func writePacked(out handle, from io.Reader, how Compress) error {
	err := copyPacked(out, from, how)
	if err == nil {
		err = out.Sync()
	}

	return errors.Join(err, out.Close())
}

func copyPacked(to io.Writer, from io.Reader, how Compress) error {
	var packed io.WriteCloser = gzip.NewWriter(to)

	if how == CompressZstd {
		encoder, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return fmt.Errorf("zstd: %w", err)
		}

		packed = encoder
	}

	_, err := io.Copy(packed, from)

	return errors.Join(err, packed.Close())
}
