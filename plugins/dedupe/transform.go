package dedupe

import (
	"context"
	"sync/atomic"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Transform is one lane of a [Memory].
type Transform struct {
	memory                        *Memory
	passed, duplicates, forgotten atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// Lanes returns the Lane of a new [Memory]. A nil clock is the real one.
func Lanes(o Options, clock plugins.Clock) (func() (pipeline.Transform, error), error) {
	memory, err := New(o, clock)
	if err != nil {
		return nil, err
	}

	return memory.Lane, nil
}

// Lane returns a transform that shares the memory with all others that it returns. It never fails; its type is that of a
// [pipeline.Stage].New.
func (y *Memory) Lane() (pipeline.Transform, error) { return &Transform{memory: y}, nil }

// Transform emits m unless it is a duplicate.
func (t *Transform) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	v := t.memory.judge(m)
	t.forgotten.Add(v.forgotten)

	if v.duplicate {
		t.duplicates.Add(1)

		return nil
	}

	if err := emit(m); err != nil {
		return err
	}

	t.passed.Add(1)

	return nil
}

// Meter returns what this lane has let pass, filtered and forgotten.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"passed": t.passed.Load(), "duplicates": t.duplicates.Load(), "forgotten": t.forgotten.Load(),
	}
}
