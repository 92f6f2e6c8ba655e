package actors_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// 13: the job stops during 100 calls that heed their context and return an error.
func TestCancelledIsNotFailed(t *testing.T) {
	t.Parallel()

	for _, inSink := range []bool{false, true} {
		t.Run(fmt.Sprintf("in the sink %t", inSink), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				again := &shelf{}
				busy := pipeline.Channel{Name: "work", Lanes: 100, Timeout: time.Hour, Sink: &shelf{}, Batch: pipeline.Batch{Messages: 1}}

				var calls atomic.Int64

				wait := func(ctx context.Context) error {
					calls.Add(1)
					<-ctx.Done()

					return fmt.Errorf("given up: %w", ctx.Err())
				}

				if inSink {
					busy.Sink = pipeline.SinkFunc(func(ctx context.Context, _ []*pipeline.Message) error { return wait(ctx) })
				} else {
					busy.Stages = []pipeline.Stage{pipeline.Func("wait",
						func(ctx context.Context, _ *pipeline.Message, _ pipeline.Emit) error { return wait(ctx) })}
				}

				g.publish(0, 100)
				r := g.run(job(busy), actors.Options{})
				pass(10 * time.Second)

				if n := calls.Load(); n != 100 {
					t.Fatalf("%d calls run, want 100", n)
				}

				report := r.Drain(time.Second)
				if report.UnfinishedCount != 100 || report.Clean || report.Err != nil {
					t.Errorf("the report says %d unfinished, clean %t, %v", report.UnfinishedCount, report.Clean, report.Err)
				}

				if got := g.Calls(consumertest.OpSendBack, consumertest.OpDeadLetter); len(got) != 0 {
					t.Errorf("%d were returned, the first: %+v", len(got), got[0])
				}

				g.run(job(pipeline.Channel{Name: "work", Sink: again}), actors.Options{})
				pass(10 * time.Second)
				once(t, 0, 100, again)

				for _, c := range g.Calls(consumertest.OpDeliver) {
					if c.Delivery != 1 {
						t.Errorf("%s came as delivery %d", c.ID, c.Delivery)
					}
				}
			})
		})
	}
}

// 14: the job stops while a slow sink still writes.
func TestSinksCloseLast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}

		var writing, closedEarly atomic.Int64

		sink.fails = func(context.Context, []*pipeline.Message) error {
			writing.Add(1)
			<-time.After(3 * time.Second)
			writing.Add(-1)

			if sink.closedTimes() > 0 {
				closedEarly.Add(1)
			}

			return nil
		}

		g.publish(0, 500)
		r := g.run(job(pipeline.Channel{Name: "work", Lanes: 2, Sink: sink}), actors.Options{})
		pass(time.Second)

		if writing.Load() == 0 {
			t.Fatal("nothing is being written")
		}

		report := r.Drain(time.Minute)
		if !report.Clean || report.Committed[queue(0)] != pipeline.Offset(len(sink.all())) {
			t.Errorf("report %+v, written %d", report, len(sink.all()))
		}

		if sink.closedTimes() != 1 || closedEarly.Load() != 0 || writing.Load() != 0 {
			t.Errorf("closed %d times, %d writes ended after that", sink.closedTimes(), closedEarly.Load())
		}
	})
}

// 15: the sink is down for ten minutes, messages of 1 MiB; what is in flight stays inside its limits. That memory does too
// is shown by TestMemoryStaysFlatBehindABlockedSink.
func TestSinkThatIsDownKeepsBytesInFlightBelowTheLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		var up atomic.Bool

		sink := &shelf{fails: func(context.Context, []*pipeline.Message) error {
			if !up.Load() {
				return pipeline.RetryAfter(errBroken, 5*time.Second)
			}

			return nil
		}}

		const mib = 1 << 20

		for i := range 60 {
			m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Body: make([]byte, mib)}
			if err := g.Publish(t.Context(), "in", []*pipeline.Message{m}); err != nil {
				t.Fatal(err)
			}
		}

		j := job(pipeline.Channel{Name: "work", Order: pipeline.OrderByQueue, Sink: sink})
		j.Retry.Attempts = 1 << 20
		r := g.run(j, actors.Options{Limits: consumer.Limits{Bytes: 8 * mib}})

		most := int64(0)

		for range 600 {
			pass(time.Second)

			most = max(most, g.status(r, 0).Bytes)
		}

		if most > 8*mib || most < 6*mib {
			t.Errorf("%d bytes were in flight, want close to 8 MiB and not above", most)
		}

		up.Store(true)

		pass(90 * time.Second) // a minute is the longest pause of the breaker
		once(t, 0, 60, sink)
		g.finished()
	})
}

// 16: the source prunes what is committed, and the process is killed at every point of commit and checkpoint.
func TestKillAtEveryCommitOfAPruningSourceLeavesNoGap(t *testing.T) {
	t.Parallel()

	for _, applied := range []bool{false, true} {
		t.Run(fmt.Sprintf("commit takes effect %t", applied), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				g.publish(0, 400)

				shelves := []*shelf{{}}
				calm := consumertest.Faults{PruneOnCommit: true}
				storm := refuse(consumertest.OpCommit)

				if applied {
					storm = consumertest.Faults{Lose: storm.Refuse}
				}

				storm.PruneOnCommit = true

				for life := range 30 {
					name := fmt.Sprint("life ", life)
					sink := shelves[len(shelves)-1]
					g.SetFaults(calm)

					// Something always stands below what is finished, so that checkpoints hold runs, and which it is changes.
					stands := func(m *pipeline.Message) bool { return int(m.Origin.Offset)%97 == life }
					r := g.run(job(pipeline.Channel{
						Name: "work", Lanes: 3, Sink: sink,
						Stages: []pipeline.Stage{slowly(), gate(stands, nil, true)},
					}), actors.Options{Instance: name, CommitEvery: 100 * time.Millisecond, Limits: consumer.Limits{Messages: 64}})

					pass(time.Duration(150+life*10) * time.Millisecond)
					g.SetFaults(storm)
					pass(110 * time.Millisecond)
					g.kill(r, name)

					shelves = append(shelves, &shelf{})
				}

				g.SetFaults(calm)
				g.run(job(pipeline.Channel{Name: "work", Sink: shelves[len(shelves)-1]}), actors.Options{})
				pass(time.Minute)
				atLeastOnce(t, 0, 400, shelves...)
				g.finished()

				if jumps := seen[*actors.OffsetJumped](g); len(jumps) != 0 {
					t.Errorf("gaps: %+v", jumps)
				}
			})
		})
	}
}

// slowly is a stage that takes ten milliseconds for a message.
func slowly() pipeline.Stage {
	return pipeline.Func("slowly", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		<-time.After(10 * time.Millisecond)

		return emit(m)
	})
}

// 17: a record cannot be decoded.
func TestUndecodableRecordSurfacesAndSkipsNothingBehindIt(t *testing.T) {
	t.Parallel()

	for _, way := range []string{"repaired", "sought past"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				sink := &shelf{}
				g.publish(0, 30)

				if err := g.Damage(queue(0), 12, errBroken); err != nil {
					t.Fatal(err)
				}

				r := g.run(job(pipeline.Channel{Name: "work", Sink: sink}), actors.Options{})
				pass(time.Minute)

				s := g.status(r, 0)
				if at := g.committed(0); at != 12 || s.Next != 12 || s.RetryAt.IsZero() || s.Waits != "a retry" {
					t.Errorf("committed at %d, status %+v", at, s)
				}

				waits := seen[*actors.QueueWaits](g)

				var damaged *consumer.DamagedError
				if len(waits) < 3 || !errors.As(waits[0].Err, &damaged) || damaged.Offset != 12 {
					t.Errorf("%d retries were published: %+v", len(waits), waits)
				}

				if way == "repaired" {
					if err := g.Damage(queue(0), 12, nil); err != nil {
						t.Fatal(err)
					}
				} else if err := r.Seek(t.Context(), queue(0), 13); err != nil {
					t.Fatal(err)
				}

				pass(time.Minute)
				g.finished()
				atLeastOnce(t, 0, 12, sink)
				atLeastOnce(t, 13, 30, sink)

				if got := slices.Contains(sink.all(), "m12"); got != (way == "repaired") || len(sink.all()) > 30 {
					t.Errorf("m12 was done: %t; %d written", got, len(sink.all()))
				}
			})
		})
	}
}

// 18: the broker comes back empty, or with an older table of offsets.
func TestLastCommitRepairsWhatACrashedBrokerHasForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		r := g.run(job(pipeline.Channel{Name: "work", Sink: &shelf{}}), actors.Options{})

		g.publish(0, 50)
		pass(6 * time.Second)
		g.RollBack("job", queue(0), consumer.Checkpoint{Next: 20})

		if report := r.Drain(time.Minute); !report.Clean {
			t.Errorf("the job ended with %+v", report)
		}

		if got := g.committed(0); got != 50 {
			t.Errorf("committed at %d of 50: the next start repeats what was finished", got)
		}
	})
}

func TestRewoundBrokerIsLoudAndFollowedOrWaitedFor(t *testing.T) {
	t.Parallel()

	for _, empty := range []bool{true, false} {
		for _, policy := range []actors.Rewind{actors.RewindFollow, actors.RewindWait} {
			t.Run(fmt.Sprintf("empty %t policy %d", empty, policy), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					g := newGround(t, 1)
					sink := &shelf{}
					r := g.run(job(pipeline.Channel{Name: "work", Sink: sink}), actors.Options{Rewind: policy})

					g.publish(0, 50)
					pass(6 * time.Second)

					if empty {
						g.Forget()
						g.publish(100, 110)
					} else {
						g.RollBack("job", queue(0), consumer.Checkpoint{Next: 20})

						if err := g.Reassign("job", queue(0), true); err != nil {
							t.Fatal(err)
						}

						// What the job did until it was told may not repair the table.
						g.RollBack("job", queue(0), consumer.Checkpoint{Next: 20})
					}

					pass(2 * time.Minute)

					rewound := seen[*actors.OffsetRewound](g)
					if len(rewound) == 0 || rewound[0].Followed || rewound[0].From != 50 {
						t.Fatalf("rewound: %+v", rewound)
					}

					followed := slices.ContainsFunc(rewound, func(e *actors.OffsetRewound) bool { return e.Followed })
					if followed != (policy == actors.RewindFollow) {
						t.Errorf("followed: %t", followed)
					}

					if policy == actors.RewindWait {
						if s := g.status(r, 0); s.Err == "" || s.RetryAt.IsZero() {
							t.Errorf("the snapshot does not say so: %+v", s)
						}

						if len(sink.all()) != 50 {
							t.Errorf("%d were written", len(sink.all()))
						}

						return
					}

					g.finished()

					if empty {
						atLeastOnce(t, 100, 110, sink)
					} else if len(sink.all()) != 80 {
						t.Errorf("%d were written, want all and 30 again", len(sink.all()))
					}
				})
			})
		}
	}
}

// closedTimes says how often the sink was closed.
func (s *shelf) closedTimes() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.closed
}
