package actors_test

import (
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// TestOpenBreakerWaitsAsLongAsTheFailureAsks has a dependency name the time until which it wants to be left alone.
func TestOpenBreakerWaitsAsLongAsTheFailureAsks(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, s *shelf, channels []pipeline.Channel) {
		t.Helper()

		const asked = 20 * time.Minute

		d.bad = func(*pipeline.Message) error {
			if !d.down.Load() {
				return nil
			}

			return pipeline.RetryAfter(errDown, asked)
		}

		d.down.Store(true)
		g.publish(0, 300)

		g.run(job(channels...), actors.Options{})
		pass(time.Minute)

		for _, opened := range seen[*actors.BreakerOpened](g) { // none where so few orders wait that few have failed
			if opened.Retry != asked {
				t.Errorf("opened: %+v", opened)
			}
		}

		before := d.calls.Load()
		pass(asked - 2*time.Minute)

		if calls := d.calls.Load() - before; calls > 0 {
			t.Errorf("the dependency was asked %d times before its time", calls)
		}

		d.down.Store(false)
		pass(30 * time.Minute)

		once(t, 0, 300, s)
		g.finished()
	})
}
