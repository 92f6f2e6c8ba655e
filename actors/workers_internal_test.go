package actors

import (
	"bytes"
	"runtime/pprof"
	"strings"
	"testing"
	"testing/synctest"
)

// In a bubble a goroutine that does not end when the job is over fails the test by itself.
func TestWorkersAreUsedAgain(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		w := newWorkers(over)
		ran := 0

		for range 10 {
			w.Schedule(func() { ran++ })
			synctest.Wait()
		}

		if idle := w.idle.Load(); ran != 10 || idle != 1 {
			t.Errorf("%d of 10 runs, one after the other, have left %d goroutines", ran, idle)
		}

		gate := make(chan struct{})

		for range 2 * maxIdle {
			w.Schedule(func() { <-gate })
		}

		close(gate)
		synctest.Wait()

		if idle := w.idle.Load(); idle != maxIdle {
			t.Errorf("%d goroutines wait, want %d", idle, maxIdle)
		}

		close(over)
		w.Schedule(func() { ran++ })
		synctest.Wait()

		if ran != 11 {
			t.Error("nothing runs after the end, when actors are still stopping")
		}
	})
}

func TestIdleWorkerHasNoLabelsOfALane(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const mark = "a-lane-that-has-run"

		over := make(chan struct{})
		defer close(over)

		newWorkers(over).Schedule(func() {
			pprof.SetGoroutineLabels(pprof.WithLabels(t.Context(), pprof.Labels(labelLane, mark)))
		})
		synctest.Wait()

		var b bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
			t.Fatal(err)
		}

		if strings.Contains(b.String(), mark) {
			t.Error("a goroutine that runs no lane has a lane's labels")
		}
	})
}
