package throttle

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Transform is one lane of a [Limit].
type Transform struct {
	limit *Limit
	scope expression.Scope

	passed, waited, waitedFor, forgotten atomic.Int64
}

var (
	_ pipeline.Transform = (*Transform)(nil)
	_ pipeline.Meter     = (*Transform)(nil)
)

// Lanes returns the Lane of a new [Limit]. A nil clock is the real one.
func Lanes(o Options, clock plugins.Clock) (func() (pipeline.Transform, error), error) {
	limit, err := New(o, clock)
	if err != nil {
		return nil, err
	}

	return limit.Lane, nil
}

// Lane returns a transform that shares the limit with all others that it returns. It never fails; its type is that of a
// [pipeline.Stage].New.
func (l *Limit) Lane() (pipeline.Transform, error) { return &Transform{limit: l}, nil }

// Transform waits for the turn of m and emits it. When the context ends first, m fails and its turn goes to others.
// It rejects m when nobody can tell which rate m belongs to.
func (t *Transform) Transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	of, err := t.limit.digestOf(m, &t.scope)
	if err != nil {
		return pipeline.Reject(fmt.Errorf("throttle: %w", err))
	}

	booked, now, wait := t.limit.book(of, m)
	if booked.forgotten {
		t.forgotten.Add(1)
	}

	if wait > 0 {
		if err := t.wait(ctx, now, wait); err != nil {
			t.limit.giveBack(booked)

			return fmt.Errorf("throttle: waiting for a turn that is %s away: %w", wait.Round(time.Millisecond), err)
		}
	}

	if err := emit(m); err != nil {
		return err
	}

	t.passed.Add(1)

	return nil
}

func (t *Transform) wait(ctx context.Context, now time.Time, wait time.Duration) error {
	t.waited.Add(1)
	defer func() { t.waitedFor.Add(int64(t.limit.clock.Now().Sub(now))) }()

	return t.limit.clock.Wait(ctx, now.Add(wait)) //nolint:wrapcheck // it is that of the context
}

// Meter returns what this lane has let pass and how long it was held up.
func (t *Transform) Meter() map[string]int64 {
	return map[string]int64{
		"passed": t.passed.Load(), "waited": t.waited.Load(), "waited_ms": time.Duration(t.waitedFor.Load()).Milliseconds(),
		"forgotten": t.forgotten.Load(),
	}
}
