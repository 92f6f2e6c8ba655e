package actors_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// The tests of the field_reports files play what has gone wrong for users of comparable systems; each is named by what must
// be.

var errBroken = errors.New("broken for good")

// refuse makes one kind of call fail always.
func refuse(ops ...consumertest.Op) consumertest.Faults {
	f := consumertest.Faults{Refuse: make(map[consumertest.Op]float64)}
	for _, op := range ops {
		f.Refuse[op] = 1
	}

	return f
}

// 1: message N fails for good, what is behind it completes, and the process is killed.
func TestKillRepeatsTheFailingMessageOnly(t *testing.T) {
	t.Parallel()

	for name, order := range map[string]pipeline.Order{
		"retried in place":     pipeline.OrderByKey,
		"send back is refused": pipeline.OrderNone,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				g.publish(0, 101)
				g.SetFaults(refuse(consumertest.OpSendBack))

				first, second := &shelf{}, &shelf{}
				j := job(pipeline.Channel{
					Name: "work", Lanes: 4, Order: order, Sink: first,
					Stages: []pipeline.Stage{failing(named("m0"), errBroken)},
				})
				j.Retry.Attempts = 1000
				r := g.run(j, actors.Options{Instance: "first"})

				pass(12 * time.Second)
				g.kill(r, "first")

				for _, c := range g.Calls(consumertest.OpCommit) {
					if c.Checkpoint.Finished(0) {
						t.Errorf("a commit passed the failing message: %+v", c.Checkpoint)
					}
				}

				g.run(job(pipeline.Channel{Name: "work", Sink: second}), actors.Options{Instance: "second"})
				pass(12 * time.Second)

				if got := second.all(); !slices.Equal(got, []string{"m0"}) {
					t.Errorf("after the restart these came again: %v, want m0 only", got)
				}

				once(t, 0, 101, first, second)
				g.finished()
			})
		})
	}
}

// 2: a sink rejects one of three for good.
func TestRejectedMessageIsOneDeadLetterAndTheOthersAreStoredOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{fails: func(_ context.Context, batch []*pipeline.Message) error {
			var failures pipeline.BatchError

			for i, m := range batch {
				if m.ID == "m1" {
					failures.Fail(i, pipeline.Reject(errBroken))
				}
			}

			return failures.Err()
		}}

		g.publish(0, 3)
		r := g.run(job(pipeline.Channel{
			Name: "work", Sink: sink, Batch: pipeline.Batch{Messages: 3, Every: time.Second},
		}), actors.Options{})
		pass(time.Minute)

		if dead := g.dead(); !slices.Equal(dead, []string{"m1"}) {
			t.Errorf("dead letters: %v, want m1 once", dead)
		}

		if got := sink.all(); !slices.Equal(got, []string{"m0", "m2"}) {
			t.Errorf("written: %v, want m0 and m2 once", got)
		}

		cause := g.Calls(consumertest.OpDeadLetter)[0].Cause
		if cause.Stage != "work/sink" || cause.Error != errBroken.Error() || cause.Deliveries != 1 {
			t.Errorf("the dead letter says %+v", cause)
		}

		g.finished()

		if report := r.Drain(0); !report.Clean {
			t.Errorf("not clean: %+v", report)
		}
	})
}

// 3: a stage fails and the broker refuses to take the message back for a minute.
func TestRefusedSendBackHoldsTheOffsetUntilOneCopyIsTaken(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		first := func(m *pipeline.Message) bool { return m.ID == "m3" && m.Origin.Delivery == 1 }

		g.publish(0, 10)
		g.SetFaults(refuse(consumertest.OpSendBack))

		r := g.run(job(pipeline.Channel{
			Name: "work", Sink: sink, Stages: []pipeline.Stage{failing(first, errBroken)},
		}), actors.Options{})

		pass(time.Minute)

		if at := g.committed(0); at != 3 {
			t.Errorf("committed at %d while m3 is nobody's, want 3", at)
		}

		s := g.status(r, 0)
		if s.Blocking == nil || s.Blocking.Doing != "goes back to the broker" || s.Blocking.NextAt.IsZero() {
			t.Errorf("the snapshot says %+v", s.Blocking)
		}

		tries := len(g.Calls(consumertest.OpSendBack))
		if refused := len(seen[*actors.ReturnRefused](g)); tries < 4 || refused != tries {
			t.Errorf("%d tries in a minute, %d of them published", tries, refused)
		}

		g.SetFaults(consumertest.Faults{})
		pass(2 * time.Minute)

		copies := 0

		for _, c := range g.Calls(consumertest.OpSendBack) {
			if c.Applied && !c.Repeated {
				copies++
			}
		}

		if copies != 1 || len(g.Messages(consumer.RetryTopic("job"))) != 1 {
			t.Errorf("%d copies were taken, want 1", copies)
		}

		once(t, 0, 10, sink)
		g.finished()
	})
}

// 4: the broker answers offset queries with an error, -1, 0 or "none" while queues are assigned anew.
func TestWrongOffsetAnswersNeverMoveAQueueBack(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		faults consumertest.Faults
		wait   time.Duration
	}{
		"errors":             {faults: refuse(consumertest.OpStored), wait: time.Minute},
		"-1":                 {faults: consumertest.Faults{Wrong: 1, Answers: []consumertest.Answer{consumertest.AnswerMinusOne}}, wait: time.Minute},
		"0, shortly":         {faults: consumertest.Faults{Wrong: 1, Answers: []consumertest.Answer{consumertest.AnswerZero}}, wait: 5 * time.Second},
		"none, shortly":      {faults: consumertest.Faults{Wrong: 1, Answers: []consumertest.Answer{consumertest.AnswerAbsent}}, wait: 5 * time.Second},
		"all of them, mixed": {faults: consumertest.Faults{Wrong: 1}, wait: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 2)
				sink := &shelf{}
				g.run(job(pipeline.Channel{Name: "work", Sink: sink}), actors.Options{})
				g.publish(0, 100)
				pass(6 * time.Second)

				g.SetFaults(c.faults)

				for id := range 2 {
					if err := g.Reassign("job", queue(id), id == 0); err != nil {
						t.Fatal(err)
					}
				}

				pass(c.wait)
				g.SetFaults(consumertest.Faults{})
				g.publish(100, 200)
				pass(time.Minute)

				g.neverLower()

				pulled := 0

				for _, call := range g.Calls(consumertest.OpPull) {
					if call.Offset == 0 && call.Queue.Topic == "in" && call.Epoch > 3 {
						pulled++
					}
				}

				if pulled > 0 {
					t.Errorf("%d pulls from 0 by mistake", pulled)
				}

				once(t, 0, 200, sink)
				g.finished()
			})
		})
	}
}

// amnesiac is a broker whose store of offsets says that there is none, while it is told to.
type amnesiac struct {
	*consumertest.Broker

	forgets atomic.Bool
}

type amnesiacMember struct {
	consumer.Member

	of *amnesiac
}

func (a *amnesiac) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	m, err := a.Broker.Join(ctx, s)

	return &amnesiacMember{Member: m, of: a}, err
}

func (m *amnesiacMember) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	if m.of.forgets.Load() {
		return consumer.Checkpoint{}, consumer.ErrNoCheckpoint
	}

	return m.Member.Stored(ctx, q)
}

// 4 again: a job that starts at the end must not take "nothing stored" for a reason to skip what it has not read.
func TestLostOffsetSkipsNothingWhereTheStartIsTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		broker := &amnesiac{Broker: g.Broker}
		hold := make(chan struct{})
		j := job(pipeline.Channel{
			Name: "work", Sink: sink, Stages: []pipeline.Stage{gate(named("m5"), hold, true)},
		})
		j.Source.Start = pipeline.Last

		r, err := actors.Start(j, broker, actors.Options{RevokeBudget: time.Second})
		if err != nil {
			t.Fatal(err)
		}

		pass(time.Second)
		g.publish(0, 10)
		pass(10 * time.Second)
		broker.forgets.Store(true)

		if err := g.Reassign("job", queue(0), false); err != nil {
			t.Fatal(err)
		}

		pass(30 * time.Second)
		close(hold)
		pass(time.Minute)
		atLeastOnce(t, 0, 10, sink)
		r.Drain(0)
		g.neverLower()
	})
}

// 1 again: a job that starts at the end and dies before its first checkpoint begins where it began.
func TestJobKilledBeforeItsFirstCheckpointSkipsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		hold, sink := make(chan struct{}), &shelf{}
		j := job(pipeline.Channel{
			Name: "work", Sink: sink, Stages: []pipeline.Stage{gate(named("m5"), hold, true)},
		})
		j.Source.Start = pipeline.Last

		g.publish(0, 3)
		r := g.run(j, actors.Options{CommitEvery: time.Hour, Instance: "first"})
		pass(time.Second)
		g.publish(3, 10)
		pass(time.Second)
		g.kill(r, "first")
		close(hold)

		again := g.run(j, actors.Options{})
		pass(time.Minute)
		atLeastOnce(t, 3, 10, sink)
		again.Drain(0)
	})
}

// 5: the stored offset is older than what the broker still has, and nothing new arrives.
func TestPrunedPositionJumpsIsReportedAndHasNoLag(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		g.publish(0, 50)
		g.RollBack("job", queue(0), consumer.Checkpoint{Next: 10})

		if err := g.Trim(queue(0), 50); err != nil {
			t.Fatal(err)
		}

		r := g.run(job(pipeline.Channel{Name: "work", Sink: &shelf{}}), actors.Options{})
		pass(10 * time.Second)

		jumps := seen[*actors.OffsetJumped](g)
		if len(jumps) != 1 || jumps[0].From != 10 || jumps[0].To != 50 || jumps[0].Queue != queue(0) {
			t.Errorf("jumps: %+v", jumps)
		}

		if s := g.status(r, 0); s.Lag() != 0 || g.committed(0) != 50 {
			t.Errorf("lag %d, committed %d", s.Lag(), g.committed(0))
		}
	})
}

// 6: offsets are missing, at the head and the tail of batches.
func TestCommitWatermarkPassesGaps(t *testing.T) {
	t.Parallel()

	for _, gap := range []int64{1, 100, 1_000_000} {
		t.Run(strconv.FormatInt(gap, 10), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				g.SetFaults(consumertest.Faults{Gap: 1, Gaps: []int64{gap}})
				g.publish(0, 500)

				sink := &shelf{}
				g.run(job(pipeline.Channel{Name: "work", Lanes: 2, Sink: sink}), actors.Options{})
				pass(time.Minute)

				once(t, 0, 500, sink)
				g.finished()

				if end := g.Standings("job", "in")[0].End; int64(end) < 500*gap {
					t.Errorf("the queue ends at %d: there are no gaps", end)
				}
			})
		})
	}
}
