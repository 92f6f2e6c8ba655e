package wasm

import (
	"bytes"

	"go.uber.org/zap"
)

// lineLog logs what is written to it, line by line; a line that is too long is several. It belongs to one goroutine.
type lineLog struct {
	log  *zap.Logger
	rest []byte
	// first is the first line since somebody emptied it.
	first string
}

// Write never fails.
func (l *lineLog) Write(p []byte) (int, error) {
	written := len(p)

	for len(p) > 0 {
		n := bytes.IndexByte(p, '\n')
		line, after := p, []byte(nil)

		if n >= 0 {
			line, after = p[:n], p[n+1:]
		}

		if room := longest - len(l.rest); len(line) > room {
			line, after, n = p[:room], p[room:], 0
		}

		l.rest = append(l.rest, line...)
		if n >= 0 {
			l.flush()
		}

		p = after
	}

	return written, nil
}

// flush logs a line that has not ended.
func (l *lineLog) flush() {
	if len(l.rest) > 0 {
		line := shorten(l.rest)
		l.rest = l.rest[:0]

		l.log.Info(line)

		if l.first == "" {
			l.first = line
		}
	}
}
