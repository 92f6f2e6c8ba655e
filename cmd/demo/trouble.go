package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// How many events each kind of trouble is made for; there is one that hangs.
const (
	poisoned  = 3
	panicking = 3
)

// slowest is the longest that an event takes with -slow.
const slowest = 8 * time.Millisecond

var errPoisoned = errors.New("poisoned by -poison")

// trouble is a stage that lets every event pass but the few that the flags have picked.
type trouble struct {
	// reject holds an event that is rejected at once, fail those that fail at every delivery.
	reject, fail set
	// panics and hangs hold events that do so at their first delivery.
	panics, hangs set
	slow          bool
	// forever is what a hung stage waits for: it is never closed in a run, only at the end of a test.
	forever chan struct{}
}

// pickTrouble picks earthquakes by the seed: the same ones in each run over a feed.
func pickTrouble(o options, events []event) *trouble {
	t := &trouble{
		reject: make(set), fail: make(set),
		panics: make(set), hangs: make(set),
		slow: o.slow, forever: make(chan struct{}),
	}

	random := rand.New(rand.NewPCG(o.seed, 0))
	order := random.Perm(len(events))
	pick := func(wanted bool, n int, to set) {
		for n > 0 && len(order) > 0 {
			e := events[order[0]]
			order = order[1:]

			if e.class == "" {
				continue
			}

			n--

			if wanted {
				to[e.id] = true
			}
		}
	}

	// Every kind takes its picks, wanted or not, so that a flag does not change what another one picks.
	pick(o.poison, 1, t.reject)
	pick(o.poison, poisoned-1, t.fail)
	pick(o.panics, panicking, t.panics)
	pick(o.hang, 1, t.hangs)

	return t
}

// stage returns the stage; all lanes share it.
func (t *trouble) stage() pipeline.Stage { return pipeline.Func("trouble", t.transform) }

func (t *trouble) transform(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	if t.slow {
		if err := pause(ctx, rand.N(slowest)); err != nil {
			return err
		}
	}

	first := m.Origin.Delivery <= 1

	switch {
	case t.reject[m.Key]:
		return pipeline.Reject(errPoisoned)
	case t.fail[m.Key]:
		return errPoisoned
	case first && t.panics[m.Key]:
		panic(fmt.Sprintf("%s panics by -panic", m.Key)) //nolint:forbidigo // the demonstration
	case first && t.hangs[m.Key]:
		<-t.forever // whatever the context says: that is what hanging is

		return errors.New("hung by -hang")
	default:
		return emit(m)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
