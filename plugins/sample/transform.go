// Package sample lets a share of the messages pass.
package sample

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options say what passes.
type Options struct {
	// Share is how much passes, from 0 (nothing) to 1 (everything).
	Share float64 `help:"How much passes, from 0 (nothing) to 1 (everything)." option:"share,main,required"`
	// By makes the choice repeatable: messages that agree in this field pass together or not at all, in every process and
	// at every attempt. The zero value chooses at random.
	By plugins.Field `help:"Messages that agree in this field pass together or not at all." option:"by"`
}

// Validate refuses a share that is none.
func (o *Options) Validate() error {
	if o.Share < 0 || o.Share > 1 || math.IsNaN(o.Share) {
		return fmt.Errorf("the share is %v, should be from 0 to 1", o.Share)
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Lets a share of the messages pass and filters the others.",
		Text: "With by, the choice is made by a hash of a field: id, key, tag, topic, text (the body) or props.NAME. So all " +
			"messages of a key pass, or none, and a message that is delivered again is chosen as before.",
		Example: "sample: { share: 0.01, by: key }",
		Metrics: []plugins.Metric{
			{Name: "passed", Help: "Messages that passed."},
			{Name: "filtered", Help: "Messages that did not."},
		},
	}
}

// Transform lets messages pass. It belongs to one lane.
type Transform struct {
	by               plugins.Field
	share            float64
	passed, filtered atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// New returns a transform.
func New(o Options) (*Transform, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("sample: %w", err)
	}

	return &Transform{by: o.By, share: o.Share}, nil
}

// Transform emits m, or does not.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if t.draw(m) >= t.share {
		t.filtered.Add(1)

		return nil
	}

	if err := emit(m); err != nil {
		return err
	}

	t.passed.Add(1)

	return nil
}

// draw returns a number in [0, 1).
func (t *Transform) draw(m *pipeline.Message) float64 {
	if t.by.IsZero() {
		return rand.Float64()
	}

	h := fnv.New64a()
	_, _ = io.WriteString(h, t.by.Of(m))

	return float64(mix(h.Sum64())>>11) / (1 << 53)
}

// mix spreads a hash whose upper bits are weak for short texts: the last step of MurmurHash3, which is in the public domain.
func mix(h uint64) uint64 {
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	h ^= h >> 33
	h *= 0xc4ceb9fe1a85ec53

	return h ^ h>>33
}

// Meter returns how many messages passed and how many did not.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{"passed": t.passed.Load(), "filtered": t.filtered.Load()}
}
