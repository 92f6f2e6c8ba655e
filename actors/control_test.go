package actors_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func TestPausedQueueIsNotPulledUntilItIsResumed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		r := g.run(job(pipeline.Channel{Name: "work", Sink: sink}), actors.Options{})

		g.publish(0, 10)
		pass(time.Second)

		if err := r.Pause(t.Context(), queue(0), "a look at it"); err != nil {
			t.Fatal(err)
		}

		pass(20 * time.Second) // a pull that was under way may still bring something
		g.publish(10, 20)
		pass(20 * time.Second)

		held := len(sink.all())
		if s := g.status(r, 0); s.Paused != "a look at it" || held > 11 {
			t.Errorf("paused %q, written %d", s.Paused, held)
		}

		if err := g.Reassign("job", queue(0), false); err != nil {
			t.Fatal(err)
		}

		if err := r.Resume(t.Context(), queue(0)); err != nil {
			t.Fatal(err)
		}

		pass(20 * time.Second)
		once(t, 0, 20, sink)

		if s := g.status(r, 0); s.Paused != "" || s.Lag() != 0 {
			t.Errorf("paused %q, lag %d", s.Paused, s.Lag())
		}
	})
}

func TestSeekGoesBackAndForthWithoutARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		r := g.run(job(pipeline.Channel{Name: "work", Sink: sink}), actors.Options{})

		g.publish(0, 30)
		pass(6 * time.Second)

		if err := r.Seek(t.Context(), queue(0), 20); err != nil {
			t.Fatal(err)
		}

		if at := g.committed(0); at != 20 {
			t.Errorf("committed at %d when the seek was answered, want 20", at)
		}

		pass(6 * time.Second)

		if got := sink.all(); len(got) != 40 || !slices.Equal(got[30:], got[20:30]) {
			t.Errorf("written %v, want m20 to m29 again", got)
		}

		if err := r.Pause(t.Context(), queue(0), ""); err != nil {
			t.Fatal(err)
		}

		pass(20 * time.Second)
		g.publish(30, 40)

		if err := r.Seek(t.Context(), queue(0), 38); err != nil {
			t.Fatal(err)
		}

		if err := r.Resume(t.Context(), queue(0)); err != nil {
			t.Fatal(err)
		}

		pass(6 * time.Second)

		if got := sink.all(); !slices.Contains(got, "m38") || !slices.Contains(got, "m39") || slices.Contains(got, "m37") {
			t.Errorf("written %v, want no m37", got[30:])
		}

		g.finished()
	})
}

func TestRequestsThatCannotBeCarriedOutSayWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		r := g.run(job(pipeline.Channel{Name: "work", Sink: &shelf{}}), actors.Options{})

		pass(time.Second)

		for what, err := range map[string]error{
			"pause": r.Pause(t.Context(), queue(7), ""),
			"seek":  r.Seek(t.Context(), queue(7), 1),
		} {
			if !errors.Is(err, consumer.ErrNotOwner) || !strings.Contains(err.Error(), "in/7") || !strings.Contains(err.Error(), "in/0") {
				t.Errorf("%s of a queue that is not owned: %v", what, err)
			}
		}

		if err := r.Seek(t.Context(), queue(0), -1); err == nil {
			t.Error("a negative offset was sought")
		}

		r.Drain(0)

		if _, err := r.Snapshot(t.Context()); !errors.Is(err, actors.ErrStopped) {
			t.Errorf("a snapshot of a stopped job: %v", err)
		}
	})
}

func TestDrainFinishesWhatItCanAndReportsTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}

		g.publish(0, 40)

		r := g.run(job(
			pipeline.Channel{
				Name: "work", Lanes: 2, Timeout: time.Hour, Routes: []pipeline.Route{{To: "end"}},
				Stages: []pipeline.Stage{slowly(), gate(named("m3"), nil, true)},
			},
			pipeline.Channel{Name: "end", Sink: sink, Batch: pipeline.Batch{Messages: 1000, Every: time.Hour}},
		), actors.Options{})
		pass(50 * time.Millisecond)

		began := time.Now()
		report := r.Drain(10 * time.Second)

		if took := time.Since(began); took < 10*time.Second || took > 13*time.Second || report.Took > took {
			t.Errorf("the drain took %s, reported %s", took, report.Took)
		}

		if report.Clean || report.Err != nil || report.UnfinishedCount != 1 || report.Committed[queue(0)] != 3 {
			t.Errorf("report: %+v", report)
		}

		if u := report.Unfinished; len(u) != 1 || u[0].Offset != 3 || u[0].MessageID != "m3" || u[0].Holder != "runs at work/gate" {
			t.Errorf("unfinished: %+v", u)
		}

		if got := len(sink.all()); got != 39 {
			t.Errorf("%d were written, want the 39 that were pulled and can end", got)
		}

		again := &shelf{}
		g.run(job(pipeline.Channel{Name: "work", Sink: again}), actors.Options{})
		pass(10 * time.Second)
		once(t, 3, 4, again)
	})
}

func TestRunReturnsWhatIsUnfinished(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		g.publish(0, 5)

		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()

		err := actors.Run(ctx, job(pipeline.Channel{
			Name: "work", Timeout: time.Hour, Sink: &shelf{}, Stages: []pipeline.Stage{gate(named("m0"), nil, true)},
		}), g, actors.Options{DrainBudget: time.Second})

		var unfinished *actors.UnfinishedError
		if !errors.As(err, &unfinished) || unfinished.Report.UnfinishedCount != 5 || !strings.Contains(err.Error(), "in/0 at 0") {
			t.Errorf("Run returned %v", err)
		}
	})
}

func TestFailedMessageOfABroadcastingJobIsDroppedAndCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		sink := &shelf{}
		j := job(pipeline.Channel{Name: "work", Sink: sink, Stages: []pipeline.Stage{failing(named("m3"), errBroken)}})
		j.Source.Broadcast = true

		g.publish(0, 10)
		r := g.run(j, actors.Options{Instance: "one"})
		pass(10 * time.Second)

		if s := g.snapshot(r); s.Counts.Dropped != 1 || s.Counts.Completed != 9 {
			t.Errorf("counts %+v", s.Counts)
		}

		dropped := seen[*actors.MessageDropped](g)
		if len(dropped) != 1 || dropped[0].MessageID != "m3" || !errors.Is(dropped[0].Err, errBroken) {
			t.Errorf("dropped: %+v", dropped)
		}

		if back := g.Calls(consumertest.OpSendBack, consumertest.OpDeadLetter); len(back) != 0 {
			t.Errorf("returned: %+v", back)
		}

		if report := r.Drain(0); !report.Clean {
			t.Errorf("report %+v", report)
		}
	})
}

// closable is a stage that notes how often it was closed.
type closable struct{ closed *int }

func (c *closable) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	return emit(m)
}

func (c *closable) Close() error {
	*c.closed++

	return nil
}

var _ io.Closer = (*closable)(nil)

func TestStopClosesEachStageAndPublishesEventsInTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		closed := 0
		sink := &shelf{}

		g.publish(0, 3)
		r := g.run(job(pipeline.Channel{
			Name: "work", Sink: sink,
			Stages: []pipeline.Stage{{Name: "closable", New: func() (pipeline.Transform, error) { return &closable{closed: &closed}, nil }}},
		}), actors.Options{})
		pass(time.Second)

		if report := r.Drain(0); !report.Clean {
			t.Errorf("report %+v", report)
		}

		synctest.Wait()

		if closed != 1 || sink.closedTimes() != 1 {
			t.Errorf("the stage was closed %d times, the sink %d times", closed, sink.closedTimes())
		}

		started, stopped := seen[*actors.JobStarted](g), seen[*actors.JobStopped](g)
		if len(started) != 1 || len(stopped) != 1 || stopped[0].Report == nil || stopped[0].JobName() != "job" {
			t.Errorf("started %v, stopped %v", started, stopped)
		}

		committed := seen[*actors.Committed](g)
		if last := committed[len(committed)-1]; last.Queue.Topic == "in" && last.Next != 3 {
			t.Errorf("the last commit was published at %d", last.Next)
		}

		if _, isLast := g.events[len(g.events)-1].(*actors.JobStopped); !isLast {
			t.Errorf("the last event is %T", g.events[len(g.events)-1])
		}
	})
}
