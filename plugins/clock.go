package plugins

import (
	"context"
	"time"
)

// Clock is the time that plugins go by where they hold messages up or forget them, so that tests of jobs need not wait. What
// waits for other systems goes by the real time. It is safe for concurrent use.
type Clock interface {
	// Now is the present time. It never goes back.
	Now() time.Time
	// Wait returns at a time, or at once when that is past. It fails with the error of the context when that ends first.
	Wait(ctx context.Context, until time.Time) error
}

// RealClock is the clock of the machine.
type RealClock struct{}

var _ Clock = RealClock{}

// Now is [time.Now].
func (RealClock) Now() time.Time { return time.Now() }

// Wait waits by a timer.
func (RealClock) Wait(ctx context.Context, until time.Time) error {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
