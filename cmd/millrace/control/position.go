package control

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// ParsePosition reads first, last, an offset, or a time: RFC 3339, or how long ago, such as 90m.
func ParsePosition(text string) (Position, error) {
	switch text {
	case "first":
		return Position{At: true, Start: pipeline.First}, nil
	case "last":
		return Position{At: true, Start: pipeline.Last}, nil
	}

	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 {
		return Position{Offset: pipeline.Offset(n)}, nil
	}

	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return Position{At: true, Start: pipeline.StartAt(t)}, nil
	}

	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return Position{At: true, Start: pipeline.StartAt(time.Now().Add(-ago))}, nil
	}

	return Position{}, fmt.Errorf("%q is no position; use first, last, an offset, a time such as 2026-01-31T12:00:00Z, "+
		"or how long ago, such as 90m", text)
}

// String returns what [ParsePosition] reads.
func (p Position) String() string {
	if p.At {
		return p.Start.String()
	}

	return strconv.FormatInt(int64(p.Offset), 10)
}
