package jobtest

import (
	"context"
	"sync"
	"time"

	"github.com/millrace/millrace/plugins"
)

// clock goes as the real one does, but who waits makes it jump to the end of the wait. No timeout of a channel counts that.
type clock struct {
	mu sync.Mutex
	// ahead is by how much it has jumped; guarded by mu.
	ahead time.Duration
}

var _ plugins.Clock = (*clock)(nil)

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()

	return time.Now().Add(c.ahead)
}

func (c *clock) Wait(ctx context.Context, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	// Several lanes wait for times of their own; each has its time come when the clock is there.
	c.ahead = max(c.ahead, time.Until(until))

	return nil
}
