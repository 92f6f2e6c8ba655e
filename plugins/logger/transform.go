// Package logger logs messages on their way.
package logger

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Transform logs messages. It belongs to one lane.
type Transform struct {
	options Options
	log     *zap.Logger

	// The second that is counted, the lines in it, and the messages since the last line that got none.
	second time.Time
	lines  int
	missed int64

	logged, leftOut atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform that logs to log.
func New(o Options, log *zap.Logger) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}

	if log == nil {
		return nil, errors.New("log: a logger is required")
	}

	if o.Level < Debug || o.Level > Error {
		return nil, fmt.Errorf("log: there is no level %d", o.Level)
	}

	if o.Text == "" {
		o.Text = "message"
	}

	if o.PerSecond == 0 {
		o.PerSecond = 10
	}

	if o.Longest == 0 {
		o.Longest = 256
	}

	if o.Fields == nil {
		for _, name := range []string{"id", "key", "tag"} {
			field, err := plugins.ParseField(name)
			if err != nil {
				return nil, fmt.Errorf("log: %w", err)
			}

			o.Fields = append(o.Fields, field)
		}
	}

	return &Transform{options: o, log: log}, nil
}

// Transform logs m and emits it.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if t.turn(time.Now()) {
		t.write(m)
	} else {
		t.missed++
		t.leftOut.Add(1)
	}

	return emit(m)
}

// turn reports whether there is room for a line in this second.
func (t *Transform) turn(now time.Time) bool {
	if now.Sub(t.second) >= time.Second {
		t.second, t.lines = now, 0
	}

	if t.lines >= t.options.PerSecond {
		return false
	}

	t.lines++

	return true
}

func (t *Transform) write(m *pipeline.Message) {
	line := t.log.Check(zapcore.Level(t.options.Level), t.options.Text)
	if line == nil {
		return
	}

	fields := make([]zap.Field, 0, len(t.options.Fields)+1)

	for _, f := range t.options.Fields {
		if value := f.Of(m); value != "" {
			fields = append(fields, zap.String(f.String(), t.shorten(value)))
		}
	}

	if t.missed > 0 {
		fields = append(fields, zap.Int64("left_out", t.missed))
		t.missed = 0
	}

	line.Write(fields...)
	t.logged.Add(1)
}

// shorten returns at most so many bytes of a value, and what is no text in it replaced.
func (t *Transform) shorten(value string) string {
	if longest := int(t.options.Longest); len(value) > longest {
		value = value[:longest] + "…"
	}

	return strings.ToValidUTF8(value, "\uFFFD")
}

// Meter returns how many lines were logged and how many messages got none.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{"logged": t.logged.Load(), "left_out": t.leftOut.Load()}
}
