package actors_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

var errDown = errors.New("connection refused")

// dependency is what a stage or a sink asks; it can be down, and for some messages it always is.
type dependency struct {
	down  atomic.Bool
	calls atomic.Int64
	bad   func(m *pipeline.Message) error
}

func (d *dependency) ask(m *pipeline.Message) error {
	d.calls.Add(1)

	if d.bad != nil {
		if err := d.bad(m); err != nil {
			return err
		}
	}

	if d.down.Load() {
		return errDown
	}

	return nil
}

// stage asks the dependency for each message.
func (d *dependency) stage() pipeline.Stage {
	return pipeline.Func("enrich", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if err := d.ask(m); err != nil {
			return err
		}

		return emit(m)
	})
}

// write is what a sink does whose writes fail as a whole when the dependency fails on one of their messages.
func (d *dependency) write(_ context.Context, batch []*pipeline.Message) error {
	for _, m := range batch {
		if err := d.ask(m); err != nil {
			return err
		}
	}

	return nil
}

// shapes are the channels that a dependency can be behind; s is where their messages end.
func shapes(d *dependency, s *shelf) map[string][]pipeline.Channel {
	shapes := make(map[string][]pipeline.Channel)

	for _, order := range []pipeline.Order{pipeline.OrderNone, pipeline.OrderByKey, pipeline.OrderByQueue} {
		shapes["stage, order "+order.String()] = []pipeline.Channel{
			{Name: "work", Lanes: 3, Order: order, Stages: []pipeline.Stage{d.stage()}, Sink: s},
		}
		shapes["second channel, order "+order.String()] = []pipeline.Channel{
			{Name: "first", Lanes: 2, Order: order, Routes: []pipeline.Route{{To: "work"}}},
			{Name: "work", Lanes: 2, Order: order, Stages: []pipeline.Stage{d.stage()}, Sink: s},
		}
		shapes["sink, order "+order.String()] = []pipeline.Channel{{
			Name: "work", Lanes: 3, Order: order, Batch: pipeline.Batch{Messages: 50, Every: time.Second},
			Sink: sinkFunc(func(ctx context.Context, batch []*pipeline.Message) error {
				if err := d.write(ctx, batch); err != nil {
					return err
				}

				return s.Write(ctx, batch)
			}),
		}}
	}

	return shapes
}

// sinkFunc is a sink that is a function.
type sinkFunc func(ctx context.Context, batch []*pipeline.Message) error

func (f sinkFunc) Write(ctx context.Context, batch []*pipeline.Message) error { return f(ctx, batch) }

// eachShape runs a test for each shape, in a bubble.
func eachShape(t *testing.T, f func(t *testing.T, g *ground, d *dependency, s *shelf, channels []pipeline.Channel)) {
	t.Helper()

	for name := range shapes(&dependency{}, nil) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d, s := &dependency{}, &shelf{}
				f(t, newGround(t, 3), d, s, shapes(d, s)[name])
			})
		})
	}
}

func TestDependencyThatIsDownSendsNothingToTheDeadLetters(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, s *shelf, channels []pipeline.Channel) {
		t.Helper()

		d.down.Store(true)
		g.publish(0, 300)

		g.run(job(channels...), actors.Options{})
		pass(10 * time.Minute)

		opened := seen[*actors.BreakerOpened](g)
		if len(opened) != 1 || opened[0].Channel != "work" || !errors.Is(opened[0].Err, errDown) {
			t.Fatalf("opened: %+v", opened)
		}

		if calls := d.calls.Load(); calls > 1000 {
			t.Errorf("the dependency was asked %d times while it was down", calls)
		}

		d.down.Store(false)
		pass(90 * time.Second)

		if dead := g.Calls(consumertest.OpDeadLetter); len(dead) != 0 {
			t.Errorf("%d dead letters, the first %+v", len(dead), dead[0])
		}

		once(t, 0, 300, s)
		g.finished()

		if closed := seen[*actors.BreakerClosed](g); len(closed) != 1 || closed[0].Open < 9*time.Minute {
			t.Errorf("closed: %+v", closed)
		}
	})
}

func TestBadMessageAmongGoodOnesIsDeadOnTime(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, _ *shelf, channels []pipeline.Channel) {
		t.Helper()

		d.bad = func(m *pipeline.Message) error {
			if m.ID == "m4" {
				return errBroken
			}

			return nil
		}

		channels[len(channels)-1].Batch.Messages = 1 // a batch would fail as a whole

		g.run(job(channels...), actors.Options{})

		for i := range 30 {
			g.publish(10*i, 10*i+10)
			pass(100 * time.Millisecond)
		}

		pass(4 * time.Second)

		if dead := g.dead(); len(dead) != 1 || dead[0] != "m4" {
			t.Errorf("dead letters: %v, want m4", dead)
		}

		if opened := seen[*actors.BreakerOpened](g); len(opened) != 0 {
			t.Errorf("opened: %+v", opened)
		}

		pass(10 * time.Second)
		g.finished()
	})
}

func TestMessagesThatAreAllRejectedAreDeadAndNothingPauses(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, _ *shelf, channels []pipeline.Channel) {
		t.Helper()

		d.bad = func(*pipeline.Message) error { return pipeline.Reject(errBroken) }

		g.publish(0, 300)
		g.run(job(channels...), actors.Options{})
		pass(10 * time.Second)

		if dead := g.dead(); len(dead) != 300 {
			t.Errorf("%d dead letters, want 300", len(dead))
		}

		if opened := seen[*actors.BreakerOpened](g); len(opened) != 0 {
			t.Errorf("opened: %+v", opened)
		}

		g.finished()
	})
}

// A message that will never get through is not the only one that is tried, so it does not keep the others from going on.
func TestBadMessageDoesNotStandForAllThatWait(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, s *shelf, channels []pipeline.Channel) {
		t.Helper()

		d.down.Store(true)
		d.bad = func(m *pipeline.Message) error {
			if m.ID == "m0" || m.ID == "m1" {
				return errBroken
			}

			return nil
		}

		channels[len(channels)-1].Batch.Messages = 1

		g.publish(0, 300)
		g.run(job(channels...), actors.Options{})
		pass(time.Minute)
		d.down.Store(false)
		pass(5 * time.Minute)

		dead := g.dead()
		slices.Sort(dead)

		if !slices.Equal(dead, []string{"m0", "m1"}) {
			t.Errorf("dead letters: %v, want m0 and m1", dead)
		}

		once(t, 2, 300, s)
		g.finished()
	})
}

// The last queue of an order has only one message that may be tried. When that is a bad one it is given up in the end.
func TestBadMessageThatAllWaitForIsGivenUpWhenPatienceEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		d, s := &dependency{}, &shelf{}
		d.bad = func(m *pipeline.Message) error {
			if m.ID == "m0" {
				return errBroken
			}

			return nil
		}

		channels := shapes(d, s)["sink, order queue"]
		channels[0].Breaker.Patience = 20 * time.Minute

		g.publish(0, 50)
		g.run(job(channels...), actors.Options{})
		pass(19 * time.Minute)

		if dead := g.dead(); len(dead) != 0 {
			t.Errorf("dead letters: %v", dead)
		}

		pass(10 * time.Minute)

		if dead := g.dead(); len(dead) != 1 || dead[0] != "m0" {
			t.Errorf("dead letters: %v, want m0", dead)
		}

		once(t, 1, 50, s)
		g.finished()
	})
}

func TestHungDependencyIsADependencyThatIsDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		s, open := &shelf{}, make(chan struct{})

		var down atomic.Bool

		down.Store(true)
		g.publish(0, 100)

		g.run(job(pipeline.Channel{
			Name: "work", Lanes: 2, Timeout: time.Second, Sink: s,
			Stages: []pipeline.Stage{gate(func(*pipeline.Message) bool { return down.Load() }, open, false)},
		}), actors.Options{HungLanes: 1000})
		pass(5 * time.Minute)
		down.Store(false)
		pass(2 * time.Minute)

		if dead := g.dead(); len(dead) != 0 {
			t.Errorf("dead letters: %v", dead)
		}

		if opened := seen[*actors.BreakerOpened](g); len(opened) != 1 || !errors.Is(opened[0].Err, pipeline.ErrTimeout) {
			t.Errorf("opened: %+v", opened)
		}

		once(t, 0, 100, s)
		g.finished()
		close(open)
		pass(time.Second)
	})
}

func TestStopWhileTheBreakerIsOpenLeavesAllOfItBehindInTime(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, s *shelf, channels []pipeline.Channel) {
		t.Helper()

		g.publish(0, 20)

		first := g.run(job(channels...), actors.Options{Instance: "first"})
		pass(time.Minute)
		d.down.Store(true)
		g.publish(20, 300)
		pass(5 * time.Minute)

		began := time.Now()
		report := first.Drain(20 * time.Second)

		if took := time.Since(began); took > 21*time.Second {
			t.Errorf("it took %s", took)
		}

		if report.Err != nil || report.UnfinishedCount == 0 {
			t.Errorf("report: %+v", report)
		}

		if back := g.Calls(consumertest.OpDeadLetter); len(back) != 0 {
			t.Errorf("%d dead letters", len(back))
		}

		d.down.Store(false)
		g.run(job(channels...), actors.Options{Instance: "second"})
		pass(2 * time.Minute)

		once(t, 0, 300, s)
		g.finished()
	})
}

func TestQueueThatIsTakenWhileTheBreakerIsOpenIsGivenUpInTime(t *testing.T) {
	t.Parallel()
	eachShape(t, func(t *testing.T, g *ground, d *dependency, s *shelf, channels []pipeline.Channel) {
		t.Helper()

		d.down.Store(true)
		g.publish(0, 300)

		g.run(job(channels...), actors.Options{})

		for range 20 {
			pass(20 * time.Second)

			for id := range 3 {
				if err := g.Reassign("job", queue(id), false); err != nil {
					t.Fatal(err)
				}
			}
		}

		pass(30 * time.Second)

		if got := len(seen[*actors.QueueRevoked](g)); got != 60 {
			t.Errorf("%d queues were given up, want 60", got)
		}

		d.down.Store(false)
		pass(3 * time.Minute)

		if dead := g.dead(); len(dead) != 0 {
			t.Errorf("dead letters: %v", dead)
		}

		once(t, 0, 300, s)
		g.finished()
	})
}
