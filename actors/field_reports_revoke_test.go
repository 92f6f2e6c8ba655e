package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// 7: queues are assigned anew 200 times while their work runs, fails and hangs.
func TestReassignmentsLeaveNothingInFlightAndNoPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		sink := &shelf{}
		trouble := pipeline.Func("trouble", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			switch n := m.Origin.Offset % 10; {
			case n == 1 && m.Origin.Delivery == 1:
				return errBroken
			case n == 2:
				select {
				case <-time.After(500 * time.Millisecond):
				case <-ctx.Done():
					return ctx.Err()
				}
			case n == 3 && m.Origin.Delivery == 1:
				<-time.After(20 * time.Second) // it heeds nothing
			}

			return emit(m)
		})

		r := g.run(job(pipeline.Channel{
			Name: "work", Lanes: 4, Timeout: time.Second, Sink: sink, Stages: []pipeline.Stage{trouble},
		}), actors.Options{HungLanes: 1000, RevokeBudget: time.Second})
		pass(time.Second)

		for i := range 200 {
			g.publish(5*i, 5*i+5)

			if err := g.Reassign("job", queue(i%2), i%3 == 0); err != nil {
				t.Fatal(err)
			}

			pass(time.Duration(i%7) * 300 * time.Millisecond)
		}

		pass(5 * time.Minute)
		g.publish(1000, 1100)
		pass(time.Minute)
		atLeastOnce(t, 0, 1100, sink)
		g.finished()

		for _, q := range g.snapshot(r).Queues {
			if q.InFlight != 0 || q.Bytes != 0 || q.Lag() != 0 || q.Waits != "messages" || q.Paused != "" {
				t.Errorf("after the storm %s is %+v", q.Queue, q)
			}
		}

		if s := g.snapshot(r); s.Hung != 0 || s.Counts.Broken != 0 {
			t.Errorf("%d lanes hang, %d books are broken", s.Hung, s.Counts.Broken)
		}
	})
}

// 8: the dead-letter store refuses for a minute.
func TestRefusedDeadLetterLosesNothingAndResumesByItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}

		g.publish(0, 20)
		g.SetFaults(refuse(consumertest.OpDeadLetter))
		g.run(job(pipeline.Channel{
			Name: "work", Sink: sink, Stages: []pipeline.Stage{failing(named("m7"), pipeline.Reject(errBroken))},
		}), actors.Options{})
		pass(time.Minute)

		if at := g.committed(0); at != 7 || len(g.dead()) != 0 {
			t.Errorf("committed at %d while m7 is nobody's, want 7; dead letters %v", at, g.dead())
		}

		g.SetFaults(consumertest.Faults{})
		pass(2 * time.Minute)

		if dead := g.dead(); !slices.Equal(dead, []string{"m7"}) {
			t.Errorf("dead letters %v, want m7 once", dead)
		}

		g.finished()
		atLeastOnce(t, 0, 7, sink)
		atLeastOnce(t, 8, 20, sink)
	})
}

// 9: a half-full batch is pending when its queue is revoked: a sink that works gets it, from one that does not it goes to
// the next owner.
func TestHalfFullBatchOfARevokedQueueIsNotLost(t *testing.T) {
	t.Parallel()

	for _, works := range []bool{true, false} {
		t.Run(fmt.Sprintf("sink works %t", works), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 2)
				first, second := &shelf{}, &shelf{}
				started := 0

				if !works {
					first.fails = func(ctx context.Context, _ []*pipeline.Message) error {
						started++
						<-ctx.Done()

						return ctx.Err()
					}
				}

				batched := pipeline.Channel{
					Name: "work", Timeout: time.Hour, Sink: first, Batch: pipeline.Batch{Messages: 100, Every: time.Hour},
				}
				a := g.run(job(batched), actors.Options{Instance: "a", RevokeBudget: 3 * time.Second})

				g.publish(0, 40)
				pass(time.Minute)

				if got := first.all(); len(got) != 0 || started != 0 {
					t.Fatalf("the batch went early: %v", got)
				}

				batched.Sink = second
				batched.Batch = pipeline.Batch{}
				g.run(job(batched), actors.Options{Instance: "b"})
				pass(time.Minute)

				if !works {
					a.Drain(-1)
					pass(time.Minute)
				}

				once(t, 0, 40, first, second)
				g.neverLower()

				if works {
					return
				}

				if got := len(second.all()); got != 40 || started == 0 {
					t.Errorf("the next owner got %d of 40, the first sink was called %d times", got, started)
				}
			})
		})
	}
}

// 10: completions arrive after their queue was given up.
func TestCompletionsAfterARevokeAreCountedAndCommitNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		open := make(chan struct{})
		first, second := &shelf{}, &shelf{}
		a := g.run(job(pipeline.Channel{
			Name: "work", Lanes: 20, Timeout: time.Hour, Sink: first,
			Stages: []pipeline.Stage{gate(func(*pipeline.Message) bool { return true }, open, false)},
		}), actors.Options{Instance: "a", RevokeBudget: time.Second})

		g.publish(0, 20)
		pass(10 * time.Second)
		g.run(job(pipeline.Channel{Name: "work", Sink: second}), actors.Options{Instance: "b"})
		pass(20 * time.Second)

		moved := len(second.all())
		revoked := seen[*actors.QueueRevoked](g)

		if moved == 0 || len(revoked) == 0 || !slices.ContainsFunc(revoked, func(e *actors.QueueRevoked) bool { return e.Unfinished == moved }) {
			t.Fatalf("the next owner got %d; revoked: %+v", moved, revoked)
		}

		close(open)
		pass(20 * time.Second)

		if s := g.snapshot(a); s.Counts.Late != int64(moved) {
			t.Errorf("%d late completions are counted, want %d", s.Counts.Late, moved)
		}

		owner := make(map[pipeline.Queue]uint64)
		for _, c := range g.Calls(consumertest.OpCommit) {
			if c.Epoch < owner[c.Queue] {
				t.Errorf("%s was committed under the old epoch %d", c.Queue, c.Epoch)
			}

			owner[c.Queue] = max(owner[c.Queue], c.Epoch)
		}

		atLeastOnce(t, 0, 20, first, second)
		g.finished()
	})
}

// 11: a clean revoke with 100 in flight that finish in time.
func TestCleanRevokeRepeatsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		first, second := &shelf{}, &shelf{}
		slow := pipeline.Func("slow", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			<-time.After(2 * time.Second)

			return emit(m)
		})
		stages := []pipeline.Stage{slow}

		a := g.run(job(pipeline.Channel{Name: "work", Lanes: 100, Sink: first, Stages: stages}), actors.Options{Instance: "a"})
		pass(time.Second)
		g.publish(0, 100)
		pass(time.Second)

		running := 0
		for _, q := range g.snapshot(a).Queues {
			running += q.InFlight
		}

		if running != 100 {
			t.Fatalf("%d are in flight, want 100", running)
		}

		g.run(job(pipeline.Channel{Name: "work", Lanes: 100, Sink: second, Stages: stages}), actors.Options{Instance: "b"})
		pass(time.Minute)
		once(t, 0, 100, first, second)

		if got := len(first.all()); got != 100 {
			t.Errorf("the first owner finished %d of the 100 that it ran", got)
		}

		g.publish(100, 200)
		pass(time.Minute)
		once(t, 0, 200, first, second)

		if len(second.all()) == 0 {
			t.Error("the second member got nothing")
		}

		g.finished()
	})
}

// 11 again: what waits for a lane when its queue is revoked is the next owner's.
func TestRevokedMessagesThatWaitForALaneAreTheNextOwners(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		first, second := &shelf{}, &shelf{}
		slow := pipeline.Func("slow", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			<-time.After(time.Second)

			return emit(m)
		})

		a := g.run(job(pipeline.Channel{Name: "work", Sink: first, Stages: []pipeline.Stage{slow}}), actors.Options{Instance: "a"})
		pass(time.Second)
		g.publish(0, 60)
		pass(5500 * time.Millisecond)

		if waiting := g.snapshot(a).Channels[0].Waiting; waiting < 50 {
			t.Fatalf("%d wait for the lane", waiting)
		}

		g.run(job(pipeline.Channel{Name: "work", Sink: second}), actors.Options{Instance: "b"})
		pass(2 * time.Minute)
		once(t, 0, 60, first, second)

		if len(second.all()) < 20 {
			t.Errorf("the next owner got %d", len(second.all()))
		}

		g.finished()
	})
}

// 12: the same queue is revoked and assigned back in one step.
func TestQueueGivenBackAtOnceStartsAtTheStoredCheckpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		open := make(chan struct{})
		sink := &shelf{}
		r := g.run(job(pipeline.Channel{
			Name: "work", Lanes: 2, Sink: sink, Stages: []pipeline.Stage{gate(named("m0"), open, true)},
		}), actors.Options{})

		g.publish(0, 10)
		pass(6 * time.Second)

		if err := g.Reassign("job", queue(0), true); err != nil {
			t.Fatal(err)
		}

		pass(6 * time.Second)
		close(open) // the queue is begun again when m0 has ended
		pass(6 * time.Second)

		starts := seen[*actors.QueueAssigned](g)
		last := starts[len(starts)-1]

		if last.Queue != queue(0) || last.From != 0 || last.Done != 9 {
			t.Errorf("started from %d with %d done, want from 0 with 9 done", last.From, last.Done)
		}

		for _, id := range sink.all() {
			if id != "m0" && countOf(sink, id) != 1 {
				t.Errorf("%s was done again", id)
			}
		}

		atLeastOnce(t, 0, 10, sink)
		g.finished()

		if s := g.status(r, 0); s.InFlight != 0 {
			t.Errorf("in flight: %d", s.InFlight)
		}
	})
}

// countOf says how often an id was written.
func countOf(s *shelf, id string) int {
	n := 0

	for _, other := range s.all() {
		if other == id {
			n++
		}
	}

	return n
}

// A stage outlasts the revoke budget while its queue is taken away and given back: the message runs alone.
func TestQueueThatComesBackWaitsForItsFormerRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}

		var running, most, calls atomic.Int32

		slow := pipeline.Func("slow", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			most.Store(max(most.Load(), running.Add(1)))
			calls.Add(1)
			<-time.After(20 * time.Second)
			running.Add(-1)

			return emit(m)
		})

		r := g.run(job(pipeline.Channel{
			Name: "work", Lanes: 2, Sink: sink, Stages: []pipeline.Stage{slow}, Timeout: time.Minute,
		}), actors.Options{RevokeBudget: time.Second})
		g.publish(0, 1)
		pass(5 * time.Second)

		if err := g.Reassign("job", queue(0), true); err != nil {
			t.Fatal(err)
		}

		pass(10 * time.Second)

		if s := g.snapshot(r).Queues; calls.Load() != 1 || !slices.ContainsFunc(s, func(q actors.QueueStatus) bool {
			return q.Queue == queue(0) && strings.Contains(q.Err, "former ownership")
		}) {
			t.Errorf("%d runs, and while the first goes on its queue is shown as %+v", calls.Load(), s)
		}

		pass(2 * time.Minute)

		if calls.Load() != 2 || most.Load() != 1 {
			t.Errorf("%d runs, up to %d at a time; want 2, one after the other", calls.Load(), most.Load())
		}

		atLeastOnce(t, 0, 1, sink)
		g.finished()
	})
}
