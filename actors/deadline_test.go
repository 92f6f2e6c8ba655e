package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// firstDelivery picks a message by its id, the first time that the broker delivers it.
func firstDelivery(id string) func(*pipeline.Message) bool {
	return func(m *pipeline.Message) bool { return m.ID == id && m.Origin.Delivery == 1 }
}

func TestCallThatHeedsItsContextFailsItsMessageOnly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}

		g.publish(0, 20)

		began := time.Now()
		r := g.run(job(pipeline.Channel{
			Name: "work", Timeout: 4 * time.Second, Sink: sink, Stages: []pipeline.Stage{gate(firstDelivery("m4"), nil, true)},
		}), actors.Options{})
		pass(time.Minute)

		back := g.Calls(consumertest.OpSendBack)
		if len(back) != 1 || back[0].ID != "m4" {
			t.Fatalf("sent back: %+v, want m4 once", back)
		}

		if took := back[0].At.Sub(began); took < 4*time.Second || took > 5*time.Second {
			t.Errorf("m4 was given up after %s, want 4s and one look", took)
		}

		returned := seen[*actors.MessageReturned](g)
		if len(returned) != 1 || !errors.Is(returned[0].Err, pipeline.ErrTimeout) {
			t.Errorf("returned: %+v, want the deadline as the reason", returned)
		}

		once(t, 0, 20, sink)
		g.finished()

		if s := g.snapshot(r); s.Hung != 0 || len(seen[*actors.LaneHung](g)) != 0 || s.Channels[0].Counts.Timeouts != 1 {
			t.Errorf("hung %d, counts %+v", s.Hung, s.Channels[0].Counts)
		}
	})
}

func TestHungLaneIsReplacedAndItsUntouchedMessagesMove(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		open := make(chan struct{})

		g.publish(0, 100)

		r := g.run(job(pipeline.Channel{
			Name: "work", Timeout: 2 * time.Second, Sink: sink, Stages: []pipeline.Stage{gate(firstDelivery("m40"), open, false)},
		}), actors.Options{})
		pass(time.Minute)

		back := g.Calls(consumertest.OpSendBack, consumertest.OpDeadLetter)
		if len(back) != 1 || back[0].ID != "m40" {
			t.Fatalf("returned: %+v, want m40 only", back)
		}

		once(t, 0, 100, sink)
		g.finished()

		hung := seen[*actors.LaneHung](g)
		if len(hung) != 1 || hung[0].MessageID != "m40" || hung[0].Stage != "gate" || hung[0].Channel != "work" || hung[0].Offset != 40 || hung[0].Hung != 1 {
			t.Errorf("hung: %+v", hung)
		}

		if s := g.snapshot(r); s.Hung != 1 {
			t.Errorf("%d lanes hang", s.Hung)
		}

		close(open)
		pass(time.Second)
		once(t, 0, 100, sink)

		if s := g.snapshot(r); s.Hung != 0 || len(seen[*actors.LaneReturned](g)) != 1 {
			t.Errorf("%d lanes hang after the call has returned, events %+v", s.Hung, seen[*actors.LaneReturned](g))
		}

		if report := r.Drain(0); !report.Clean {
			t.Errorf("report %+v", report)
		}
	})
}

// When the time of a closing queue and that of a hung call end at once, the queue may end while the tracker takes the lane over.
// To tell what it leaves behind, it looks into all lanes, also into that one.
func TestQueueAndHungCallWhoseTimesEndAtOnce(t *testing.T) {
	t.Parallel()

	for range 20 { // which of the two comes first is chance
		synctest.Test(t, func(t *testing.T) {
			g := newGround(t, 1)
			open := make(chan struct{})

			g.publish(0, 10)

			r := g.run(job(pipeline.Channel{
				Name: "work", Lanes: 1, Timeout: 20 * time.Second, Sink: &shelf{},
				Stages: []pipeline.Stage{gate(firstDelivery("m0"), open, false)},
			}), actors.Options{RevokeBudget: 11 * time.Second}) // the call is given up after 21 s
			pass(10 * time.Second)

			if err := r.Seek(t.Context(), queue(0), 1); err != nil {
				t.Fatal(err)
			}

			pass(time.Minute)

			if s := g.status(r, 0); s.Committed != 10 {
				t.Errorf("the queue is at %d of 10", s.Committed)
			}

			close(open)
		})
	}
}

func TestTooManyHungLanesStopTheJobWithAClearError(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		open := make(chan struct{})

		g.publish(0, 10)

		r := g.run(job(pipeline.Channel{
			Name: "work", Timeout: time.Second, Sink: &shelf{},
			Stages: []pipeline.Stage{gate(func(*pipeline.Message) bool { return true }, open, false)},
		}), actors.Options{HungLanes: 3})

		pass(time.Minute)

		report := r.Report()
		if report == nil {
			t.Fatal("the job goes on")
		}

		var limit *actors.HungLanesError
		if !errors.As(report.Err, &limit) || limit.Limit != 3 || limit.Last.Stage != "gate" ||
			!strings.Contains(report.Err.Error(), "work/gate") {
			t.Errorf("the job stopped with %v", report.Err)
		}

		if hung := len(seen[*actors.LaneHung](g)); hung < 4 {
			t.Errorf("%d lanes were given up, the limit is 3", hung)
		}

		close(open)
	})
}

func TestHungSinkLosesItsBatchOnlyAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		open := make(chan struct{})

		var calls atomic.Int64

		sink := &shelf{}
		sink.fails = func(context.Context, []*pipeline.Message) error {
			if calls.Add(1) == 1 {
				<-open

				return errBroken
			}

			return nil
		}

		g.publish(0, 25)

		r := g.run(job(pipeline.Channel{
			Name: "work", Timeout: 2 * time.Second, Sink: sink, Batch: pipeline.Batch{Messages: 10, Every: time.Second},
			Breaker: pipeline.Breaker{Off: true}, // it would keep the ten
		}), actors.Options{})
		pass(30 * time.Second)

		back := g.Calls(consumertest.OpSendBack)

		lost := make(map[string]bool)
		for _, c := range back {
			lost[c.ID] = true
		}

		if len(back) != 10 || len(lost) != 10 || lost["m10"] || !lost["m9"] {
			t.Errorf("sent back: %v, want m0 to m9", lost)
		}

		hung := seen[*actors.LaneHung](g)
		if len(hung) != 1 || hung[0].Stage != "sink" {
			t.Errorf("hung: %+v", hung)
		}

		close(open)
		pass(time.Minute)
		once(t, 0, 25, sink)
		g.finished()

		if s := g.snapshot(r); s.Counts.Broken != 0 || s.Hung != 0 {
			t.Errorf("broken %d, hung %d", s.Counts.Broken, s.Hung)
		}
	})
}

func TestHungStageOfAnOrderedChannelIsRetriedInPlaceWithTheKeptCopy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		open := make(chan struct{})

		var (
			tries atomic.Int64
			mu    sync.Mutex
			got   []string
		)

		hang := pipeline.Func("hang", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if m.ID != "m1" {
				return emit(m)
			}

			mu.Lock()
			got = append(got, string(m.Body)+m.Props["written"])
			mu.Unlock()

			if tries.Add(1) == 1 {
				m.Body = []byte("scribbled")
				m.SetProp("written", "by the hung call")
				<-open
			}

			return emit(m)
		})

		for i := range 6 {
			m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Key: "one", Body: []byte("x")}
			if err := g.Publish(t.Context(), "in", []*pipeline.Message{m}); err != nil {
				t.Fatal(err)
			}
		}

		g.run(job(pipeline.Channel{
			Name: "work", Order: pipeline.OrderByKey, Lanes: 2, Timeout: 2 * time.Second, Sink: sink, Stages: []pipeline.Stage{hang},
		}), actors.Options{})
		pass(20 * time.Second)

		if back := g.Calls(consumertest.OpSendBack, consumertest.OpDeadLetter); len(back) != 0 {
			t.Errorf("returned: %+v", back)
		}

		want := []string{"m0", "m1", "m2", "m3", "m4", "m5"}
		if !slices.Equal(sink.all(), want) {
			t.Errorf("written %v, want %v", sink.all(), want)
		}

		mu.Lock()
		defer mu.Unlock()

		if !slices.Equal(got, []string{"x", "x"}) {
			t.Errorf("the tries got %q, want the message as it was", got)
		}

		g.finished()
		close(open)
		pass(time.Second)

		if !slices.Equal(sink.all(), want) {
			t.Errorf("the late result was written: %v", sink.all())
		}
	})
}

func TestWaitingDoesNotCountAsRunning(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		slow := pipeline.Func("slow", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if m.Origin.Offset >= 70 { // the ones before make the lane take up many at a time
				<-time.After(900 * time.Millisecond)
			}

			return emit(m)
		})

		g.publish(0, 120) // the last one waits for 45 s

		r := g.run(job(pipeline.Channel{
			Name: "work", Timeout: time.Second, Sink: sink, Stages: []pipeline.Stage{slow},
		}), actors.Options{})
		pass(20 * time.Second)

		s := g.status(r, 0)
		if s.Blocking == nil || s.Blocking.Doing != "runs" || time.Since(s.Blocking.Since) > time.Second {
			t.Errorf("blocking: %+v", s.Blocking)
		}

		pass(time.Minute)

		if back := g.Calls(consumertest.OpSendBack); len(back) != 0 {
			t.Errorf("%d were sent back, the first: %+v", len(back), back[0])
		}

		if got := g.snapshot(r).Channels[0].Counts.Timeouts; got != 0 {
			t.Errorf("%d time-outs", got)
		}

		once(t, 0, 120, sink)
		g.finished()
	})
}

func TestLateResultOfAHungCallIsDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink, tail := &shelf{}, &shelf{}
		open := make(chan struct{})

		g.publish(0, 10)

		r := g.run(job(
			pipeline.Channel{
				Name: "work", Timeout: time.Second, Routes: []pipeline.Route{{To: "a"}, {To: "b"}},
				Stages: []pipeline.Stage{gate(firstDelivery("m2"), open, false)},
			},
			pipeline.Channel{Name: "a", Sink: sink},
			pipeline.Channel{Name: "b", Sink: tail},
		), actors.Options{})
		pass(10 * time.Second)
		close(open)
		pass(10 * time.Second)
		once(t, 0, 10, sink)
		once(t, 0, 10, tail)
		g.finished()

		if got := g.snapshot(r).Counts; got.Broken != 0 || got.Completed+got.SentBack != 11 {
			t.Errorf("counts %+v", got)
		}
	})
}
