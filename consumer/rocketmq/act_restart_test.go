package rocketmq_test

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// restartsMakeNoCopies stops and starts a job in which every message fails three times, ten times or as often as
// MILLRACE_SCENE_CYCLES says. A message that is given twice with one delivery number, or a copy that no delivery was made of,
// would be the trace of a second copy beside the first.
func restartsMakeNoCopies(a *act) {
	const (
		failures = 3
		step     = 4 // deliveries between a start and a stop
	)

	cycles := numberFrom(a.T, "MILLRACE_SCENE_CYCLES", 10)
	a.publishes(cycles + 2)

	stage := func(ctx context.Context, _ string, number int) error {
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}

		if number <= failures {
			return errors.New("not yet")
		}

		return nil
	}
	few := actors.Options{Limits: consumer.Limits{Messages: 2}} // so that a stop leaves others where they are
	began := time.Now()

	for range cycles {
		r, before := a.starts(few, 0, stage), len(a.given)

		a.until("messages are delivered", func() bool { return len(a.given) >= before+step || a.allWritten() })
		a.ends(r)
	}

	if a.allWritten() {
		a.Error("all was done before the last restart")
	}

	took := time.Since(began)
	r := a.starts(few, 0, stage)

	a.until("all is written", a.allWritten)
	a.ends(r)
	a.balances(1)

	places := map[delivery]string{}

	for _, d := range a.given {
		key := delivery{body: d.body, number: d.number}
		if first, again := places[key]; again {
			a.Errorf("delivery %d of %s came from %s and from %s", d.number, d.body, first, d.place)
		}

		places[key] = d.place
	}

	copies := a.published * failures
	if end := a.ask(remoting.GetMaxOffset, consumer.RetryTopic(a.name), 0); end != strconv.Itoa(copies) {
		a.Errorf("the retry topic has %s copies, want %d", end, copies)
	}

	a.Logf("%d restarts in %v, %d deliveries of %d messages, %d copies", cycles, took.Round(time.Millisecond), len(a.given), a.published, copies)
}
