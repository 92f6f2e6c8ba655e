package actors_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// door is a sink that opens when it likes to.
type door struct {
	shelf

	open func(context.Context) error
}

func (d *door) Open(ctx context.Context) error { return d.open(ctx) }

var _ pipeline.Opener = (*door)(nil)

// behind is a job with a sink that opens at once, and another one.
func behind(first *shelf, second pipeline.Sink) pipeline.Job {
	return job(
		pipeline.Channel{Name: "work", Routes: []pipeline.Route{{To: "first"}, {To: "second"}}},
		pipeline.Channel{Name: "first", Sink: first},
		pipeline.Channel{Name: "second", Sink: second},
	)
}

// errShut is what a door says that was told to stop opening.
var errShut = errors.New("told to stop")

func TestAJobWhoseSinkHangsInOpenCanBeDrained(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		budgets []time.Duration
		heeds   bool
		within  time.Duration
	}{
		"a sink that heeds its context":                {budgets: []time.Duration{0}, heeds: true, within: 0},
		"a sink that does not":                         {budgets: []time.Duration{0}, within: 2 * time.Second},
		"a sink that does not, when asked to hurry":    {budgets: []time.Duration{0, -1}, within: 2 * time.Second},
		"a sink that does not, when asked for at once": {budgets: []time.Duration{-1}, within: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				first, release := &shelf{}, make(chan struct{})
				second := &door{open: func(ctx context.Context) error {
					if c.heeds {
						<-ctx.Done()

						return errShut
					}

					<-release

					return nil
				}}
				r := g.run(behind(first, second), actors.Options{})

				pass(time.Minute)

				if s := g.snapshot(r); s.State != "starting" || !strings.Contains(s.Waits, "second") {
					t.Errorf("it is %s and waits for %q", s.State, s.Waits)
				}

				began := time.Now()

				for _, budget := range c.budgets[1:] {
					go r.Drain(budget)
				}

				report := r.Drain(c.budgets[0])
				if took := time.Since(began); took > c.within {
					t.Errorf("the drain took %s", took)
				}

				if report.Clean != c.heeds || !c.heeds && !strings.Contains(report.Err.Error(), "second/sink: it has not opened") {
					t.Errorf("report %+v", report)
				}

				if first.closedTimes() != 1 || second.closedTimes() != 0 {
					t.Errorf("closed %d and %d times", first.closedTimes(), second.closedTimes())
				}

				close(release)
				synctest.Wait()

				late := 0
				if !c.heeds {
					late = 1
				}

				if second.closedTimes() != late || len(g.Calls(consumertest.OpJoin)) != 0 {
					t.Errorf("the sink that opened late was closed %d times; joins: %d", second.closedTimes(), len(g.Calls(consumertest.OpJoin)))
				}
			})
		})
	}
}

func TestAFailingSinkStopsTheStartWithItsError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		first := &shelf{}
		r := g.run(behind(first, &door{open: func(context.Context) error { return errBroken }}), actors.Options{})

		<-r.Stopped()

		if err := r.Report().Err; !errors.Is(err, errBroken) || first.closedTimes() != 1 {
			t.Errorf("it stopped with %v, and closed the first sink %d times", err, first.closedTimes())
		}
	})
}

// mute is a sink whose Close does not return.
type mute struct {
	shelf

	release chan struct{}
}

func (m *mute) Close() error {
	<-m.release

	return nil
}

func TestAJobWhoseSinkHangsInCloseEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &mute{release: make(chan struct{})}
		r := g.run(job(pipeline.Channel{Name: "work", Sink: sink}), actors.Options{})

		g.publish(0, 5)
		pass(10 * time.Second)

		report := r.Drain(0)
		if report.Err == nil || !strings.Contains(report.Err.Error(), "does not return within 30s") || report.UnfinishedCount != 0 {
			t.Errorf("report %+v", report)
		}

		g.finished()
		close(sink.release)
	})
}
