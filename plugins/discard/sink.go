// Package discard is the sink that takes everything and keeps nothing, for channels whose work is done by their stages.
package discard

import (
	"context"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options are none.
type Options struct{}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Takes every message and keeps nothing.",
		Text:    "For channels whose work is done by their stages, and for measuring a job without its output.",
		Example: "discard: {}",
		Metrics: []plugins.Metric{
			{Name: "messages", Help: "Messages taken."},
			{Name: "bytes", Help: "Bytes of their bodies."},
		},
	}
}

// Sink takes everything and counts it. The zero value is ready for use, by any number of goroutines.
type Sink struct {
	messages, bytes atomic.Int64
}

var (
	_ pipeline.Sink  = (*Sink)(nil)
	_ pipeline.Meter = (*Sink)(nil)
)

// New returns a sink. It has no options to be wrong.
func New(Options) *Sink { return &Sink{} }

// Write counts the batch. It never fails.
func (s *Sink) Write(_ context.Context, batch []*pipeline.Message) error {
	var bytes int64
	for _, m := range batch {
		bytes += int64(len(m.Body))
	}

	s.messages.Add(int64(len(batch)))
	s.bytes.Add(bytes)

	return nil
}

// Meter returns how much was taken.
func (s *Sink) Meter() map[string]int64 {
	return map[string]int64{"messages": s.messages.Load(), "bytes": s.bytes.Load()}
}
