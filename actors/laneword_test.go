package actors

import (
	"runtime"
	"sync"
	"testing"
)

func TestLaneWordStepsInOrder(t *testing.T) {
	t.Parallel()

	var w laneWord

	w.enter()

	if seq, state := w.look(); seq != 1 || state != laneRunning {
		t.Fatalf("call %d in state %d", seq, state)
	}

	if w.fence(1) {
		t.Error("a call was fenced that had not expired")
	}

	if w.expire(0) || w.expire(2) {
		t.Error("another call expired")
	}

	if state := w.leave(); state != laneRunning {
		t.Errorf("left in state %d", state)
	}

	if w.expire(1) {
		t.Error("a call expired that had ended")
	}

	w.skip()
	w.enter()

	if seq, _ := w.look(); seq != 3 {
		t.Errorf("call %d after a skipped one, want 3", seq)
	}

	if !w.expire(3) || w.expire(3) {
		t.Error("a call expires once")
	}

	if state := w.leave(); state != laneExpired {
		t.Errorf("left in state %d, want expired", state)
	}

	if w.fence(3) {
		t.Error("a call was fenced that had ended")
	}

	w.enter()

	if !w.expire(4) || !w.fence(4) || w.fence(4) {
		t.Error("an expired call is fenced once")
	}

	if state := w.leave(); state != laneFenced {
		t.Errorf("left in state %d, want fenced", state)
	}
}

// The lane and its watcher write the same plain memory, each only when the word says that it is theirs: the race detector
// sees it when both believe so.
func TestLaneWordGivesTheMemoryToOneSide(t *testing.T) {
	t.Parallel()

	const calls = 20_000

	var (
		expired, fenced int
		both            sync.WaitGroup
	)

	// On a busy machine the two sides may take turns for a long time without ever meeting.
	for round := 0; round < 50 || round < 20_000 && (expired == 0 || fenced == 0); round++ {
		var (
			w      laneWord
			memory int // owned by whoever the word says
			done   = make(chan struct{})
		)

		both.Go(func() {
			defer close(done)

			for range calls / 50 {
				memory++

				w.enter()
				runtime.Gosched()

				switch w.leave() {
				case laneFenced:
					return
				case laneExpired:
					expired++
				}

				memory++
			}
		})

		both.Go(func() {
			for looks := 1; ; looks++ {
				select {
				case <-done:
					return
				default:
				}

				seq, state := w.look()

				switch {
				case state == laneRunning && looks%3 == 0:
					w.expire(seq)
				case state == laneExpired && looks%5 == 0 && w.fence(seq):
					memory++
					fenced++

					return
				}
			}
		})

		both.Wait()

		if memory == 0 {
			t.Fatal("nobody wrote")
		}
	}

	t.Logf("%d calls expired and came back, %d lanes were fenced", expired, fenced)

	if fenced == 0 {
		t.Error("no lane was fenced: nothing was shown")
	}
}
