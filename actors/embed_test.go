package actors_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// quietSystem is somebody else's actor system.
func quietSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
}

// host is an actor of somebody else's system that has a job below it.
type host struct {
	props *actor.Props
	job   *actor.PID
	got   []any
}

func (h *host) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		h.job = c.Spawn(h.props)
		c.Watch(h.job)
	case *actors.GetSnapshot, *actors.Drain, *actors.Pause, *actors.Resume:
		c.Request(h.job, m)
	case *actors.Snapshot, *actors.Report, *actors.Done, *actor.Terminated:
		h.got = append(h.got, m)
	}
}

func TestJobBelowAnActorAnswersIsWatchedAndDrains(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		sink := &shelf{}

		g.publish(0, 20)

		props, err := actors.Props(job(pipeline.Channel{Name: "work", Sink: sink}), g.Broker, actors.Options{})
		if err != nil {
			t.Fatal(err)
		}

		system := quietSystem()
		h := &host{props: props}
		pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return h }))
		pass(time.Second)

		for _, m := range []any{&actors.GetSnapshot{}, &actors.Pause{Queue: queue(0)}, &actors.Resume{Queue: queue(0)}, &actors.Drain{}} {
			system.Root.Send(pid, m)
			pass(time.Second)
		}

		synctest.Wait()

		kinds := make([]string, len(h.got))
		for i, m := range h.got {
			kinds[i] = fmt.Sprintf("%T", m)
		}

		// The news of an actor's end may overtake its last messages.
		for _, want := range []string{"*actors.Snapshot", "*actors.Done", "*actors.Report", "*actor.Terminated"} {
			if !slices.Contains(kinds, want) {
				t.Errorf("the parent got %v, and no %s", kinds, want)
			}
		}

		ends := 0

		for _, kind := range kinds {
			if kind == "*actor.Terminated" {
				ends++
			}
		}

		if ends != 2 {
			t.Errorf("a parent that also watches was told %d times of the end, not twice", ends)
		}

		for _, m := range h.got {
			if report, ok := m.(*actors.Report); ok && !report.Clean {
				t.Errorf("report: %+v", report)
			}
		}

		once(t, 0, 20, sink)
		g.finished()
		system.Root.Stop(pid)
		pass(time.Second)
	})
}

// The end of the bubble shows that nothing runs on: it fails while a goroutine is left.
func TestEngineThatItsParentStopsOutrightLeavesNothingRunning(t *testing.T) {
	t.Parallel()

	for after, name := range map[time.Duration]string{time.Millisecond: "while it starts", 3 * time.Second: "while it works"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 2)
				sink, again := &shelf{}, &shelf{}

				var (
					writing atomic.Bool
					early   atomic.Bool
				)

				sink.fails = func(ctx context.Context, _ []*pipeline.Message) error {
					writing.Store(true)
					<-ctx.Done()
					<-time.After(100 * time.Millisecond)
					writing.Store(false)
					early.Store(sink.closedTimes() > 0)

					return ctx.Err()
				}

				g.publish(0, 20)
				g.SetFaults(consumertest.Faults{Slow: map[consumertest.Op]float64{consumertest.OpJoin: 1}})

				props, err := actors.Props(job(pipeline.Channel{Name: "work", Timeout: time.Hour, Sink: sink}), g.Broker, actors.Options{})
				if err != nil {
					t.Fatal(err)
				}

				var stopped []*actors.JobStopped

				system := quietSystem()
				system.EventStream.Subscribe(func(e any) {
					if s, ok := e.(*actors.JobStopped); ok {
						stopped = append(stopped, s)
					}
				})

				pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &host{props: props} }))
				pass(after)
				system.Root.Stop(pid)
				pass(time.Minute)
				synctest.Wait()

				if len(stopped) != 1 || stopped[0].Report.Err == nil || stopped[0].Report.Clean {
					t.Errorf("stopped: %+v", stopped)
				}

				if members := g.Members("job"); len(members) != 0 {
					t.Errorf("%v are still members of the group", members)
				}

				if writing.Load() || early.Load() || sink.closedTimes() != 1 {
					t.Errorf("writing %t, closed early %t, closed %d times", writing.Load(), early.Load(), sink.closedTimes())
				}

				if back := g.Calls(consumertest.OpSendBack, consumertest.OpDeadLetter); len(back) != 0 {
					t.Errorf("returned: %+v", back)
				}

				g.run(job(pipeline.Channel{Name: "work", Sink: again}), actors.Options{})
				pass(30 * time.Second)
				once(t, 0, 20, again)
			})
		})
	}
}

// 1 again, over the durable broker, with a real restart of it: what is above the failing message is not done again.
func TestRestartOfTheDurableBrokerRepeatsTheFailingMessageOnly(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	open := func() *embedded.Broker {
		b, err := embedded.Open(embedded.Options{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}

		return b
	}

	b := open()
	if err := b.CreateTopic(t.Context(), "in", 1); err != nil {
		t.Fatal(err)
	}

	for i := range 101 {
		m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Key: fmt.Sprintf("k%d", i)}
		if err := b.Publish(t.Context(), "in", []*pipeline.Message{m}); err != nil {
			t.Fatal(err)
		}
	}

	first, second := &shelf{}, &shelf{}
	stored := make(chan struct{}, 1)
	j := job(pipeline.Channel{
		Name: "work", Lanes: 2, Order: pipeline.OrderByKey, Sink: first,
		Stages: []pipeline.Stage{failing(named("m0"), pipeline.RetryAfter(errBroken, time.Hour))},
	})

	r, err := actors.Start(j, b, actors.Options{CommitEvery: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}

	r.OnEvent(func(e actors.Event) {
		if c, ok := e.(*actors.Committed); ok && c.Next == 0 && c.Above == 100 {
			stored <- struct{}{}
		}
	})

	select {
	case <-stored:
	case <-time.After(30 * time.Second):
		t.Fatal("no checkpoint holds the 100 that are finished")
	}

	// The store is closed under the job, which so has no chance to put anything in order.
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}

	r.Drain(-1)

	b = open()

	defer func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}()

	got := make(chan struct{}, 1)
	second.fails = func(context.Context, []*pipeline.Message) error {
		got <- struct{}{}

		return nil
	}

	r, err = actors.Start(job(pipeline.Channel{Name: "work", Sink: second}), b, actors.Options{})
	if err != nil {
		t.Fatal(err)
	}

	select {
	case <-got:
	case <-time.After(30 * time.Second):
		t.Fatal("the failing message does not come again")
	}

	report := r.Drain(0)
	if !report.Clean || report.Committed[pipeline.Queue{Topic: "in"}] != 101 {
		t.Errorf("report %+v", report)
	}

	if !slices.Equal(second.all(), []string{"m0"}) {
		t.Errorf("after the restart these came again: %v", second.all())
	}

	once(t, 0, 101, first, second)
}

func TestJobThatCannotStartSaysWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		j := job(pipeline.Channel{Name: "work", Sink: &shelf{}})
		j.Source.Topics = []string{"inn"}

		r := g.run(j, actors.Options{})
		pass(time.Minute)

		report := r.Report()
		if report == nil || report.Err == nil {
			t.Fatalf("report %+v", report)
		}

		var unknown *consumer.UnknownTopicError
		if !errors.As(report.Err, &unknown) || unknown.Topic != "inn" {
			t.Errorf("the job stopped with %v", report.Err)
		}

		if _, err := actors.Start(pipeline.Job{Name: "none"}, g.Broker, actors.Options{}); err == nil {
			t.Error("an impossible job was started")
		}

		if _, err := actors.Start(j, g.Broker, actors.Options{HungLanes: -1}); err == nil {
			t.Error("impossible options were taken")
		}
	})
}
