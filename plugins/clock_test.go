package plugins_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/plugins"
)

func TestTheRealClockWaitsUntilATimeOrTheEndOfAContext(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		var clock plugins.RealClock

		start := clock.Now()

		for _, until := range []time.Time{{}, start, start.Add(time.Hour)} {
			if err := clock.Wait(t.Context(), until); err != nil {
				t.Error(err)
			}
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()

		if err := clock.Wait(ctx, start.Add(2*time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}

		if got := clock.Now().Sub(start); got != time.Hour+time.Minute {
			t.Errorf("it took %s, want an hour and a minute", got)
		}
	})
}
