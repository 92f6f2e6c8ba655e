package actors_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func TestSnapshotNamesTheBlockingMessageInEachState(t *testing.T) {
	t.Parallel()

	hold := gate(func(m *pipeline.Message) bool { return m.ID == "m0" }, nil, true)
	first := func(m *pipeline.Message) bool { return m.ID == "m0" }

	for name, c := range map[string]struct {
		channel pipeline.Channel
		faults  consumertest.Faults
		doing   string
		stage   string
		lane    int
		failed  bool // a last error is known
		timed   bool // when the next thing happens is known
	}{
		"running in a stage": {
			channel: pipeline.Channel{Stages: []pipeline.Stage{hold}},
			doing:   "runs", stage: "gate", timed: true,
		},
		"running in the sink": {
			channel: pipeline.Channel{Sink: pipeline.SinkFunc(func(ctx context.Context, _ []*pipeline.Message) error {
				<-ctx.Done()

				return ctx.Err()
			})},
			doing: "runs", stage: "sink", timed: true,
		},
		"in a batch": {
			channel: pipeline.Channel{Batch: pipeline.Batch{Messages: 1000, Every: time.Hour}},
			doing:   "waits in a batch", stage: "sink", timed: true,
		},
		"retried later": {
			channel: pipeline.Channel{
				Order: pipeline.OrderByKey, Stages: []pipeline.Stage{failing(first, pipeline.RetryAfter(errBroken, time.Hour))},
			},
			doing: "is retried later", stage: "picky", failed: true, timed: true,
		},
		"back to the broker": {
			channel: pipeline.Channel{Stages: []pipeline.Stage{failing(first, errBroken)}},
			faults:  refuse(consumertest.OpSendBack),
			doing:   "goes back to the broker", stage: "picky", lane: -1, failed: true, timed: true,
		},
		"to the dead letters": {
			channel: pipeline.Channel{Stages: []pipeline.Stage{failing(first, pipeline.Reject(errBroken))}},
			faults:  refuse(consumertest.OpDeadLetter),
			doing:   "goes to the dead letters", stage: "picky", lane: -1, failed: true, timed: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 1)
				g.publish(0, 3)
				g.SetFaults(c.faults)

				channel := c.channel
				channel.Name, channel.Timeout = "work", time.Hour

				if channel.Sink == nil {
					channel.Sink = &shelf{}
				}

				r := g.run(job(channel), actors.Options{})
				pass(9 * time.Second)

				b := g.status(r, 0).Blocking
				if b == nil {
					t.Fatal("nothing is said to block")
				}

				if b.Offset != 0 || b.MessageID != "m0" || b.Key != "k0" || b.Doing != c.doing || b.Channel != "work" ||
					b.Stage != c.stage || b.Lane != c.lane || b.Next == "" {
					t.Errorf("blocking: %+v", b)
				}

				if (b.LastError != "") != c.failed || b.NextAt.IsZero() == c.timed {
					t.Errorf("last error %q, next %q at %s", b.LastError, b.Next, b.NextAt)
				}
			})
		})
	}
}

// Two states are about what is behind another message, in another queue than that one.
func TestSnapshotNamesWhatAMessageWaitsBehind(t *testing.T) {
	t.Parallel()

	for doing, failure := range map[string]error{
		"waits for a lane":     nil,
		"waits behind its key": errBroken,
	} {
		t.Run(doing, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				g := newGround(t, 2)
				stage := gate(func(m *pipeline.Message) bool { return m.Body[0] == '0' }, nil, true)

				if failure != nil {
					stage = failing(func(m *pipeline.Message) bool { return m.Body[0] == '0' }, pipeline.RetryAfter(errBroken, time.Hour))
				}

				// Both queues have a message of the key "same": a stage gives it to them.
				rekey := pipeline.Channel{
					Name: "rekey", Order: pipeline.OrderByQueue, Routes: []pipeline.Route{{To: "work"}},
					Stages: []pipeline.Stage{pipeline.Func("rekey", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
						m.Key = "same"

						return emit(m)
					})},
				}
				work := pipeline.Channel{Name: "work", Order: pipeline.OrderByKey, Timeout: time.Hour, Stages: []pipeline.Stage{stage}, Sink: &shelf{}}
				r := g.run(job(rekey, work), actors.Options{})

				synctest.Wait()

				for i := range 2 {
					m := &pipeline.Message{ID: fmt.Sprintf("m%d", i), Body: fmt.Append(nil, i)}
					if err := g.Publish(t.Context(), "in", []*pipeline.Message{m}); err != nil {
						t.Fatal(err)
					}

					pass(time.Second)
				}

				for _, q := range g.snapshot(r).Queues {
					if b := q.Blocking; b != nil && b.MessageID == "m1" {
						if b.Doing != doing || b.Channel != "work" || b.Next == "" {
							t.Errorf("blocking: %+v", b)
						}

						return
					}
				}

				t.Errorf("m1 blocks no queue: %+v", g.snapshot(r).Queues)
			})
		})
	}
}

func TestSnapshotCountsMessagesUntilTheyComeAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 1)
		sink := &shelf{}
		first := firstDelivery("m4")

		g.publish(0, 20)

		j := job(pipeline.Channel{Name: "work", Sink: sink, Stages: []pipeline.Stage{
			pipeline.Func("fussy", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				if first(m) {
					return errors.New("not yet")
				}

				return emit(m)
			}),
		}})
		j.Retry.Delays = []time.Duration{time.Minute}
		began := time.Now()
		r := g.run(j, actors.Options{})

		pass(30 * time.Second)

		if s := g.snapshot(r); s.Away != 1 || s.BackAt.Sub(began).Round(time.Second) != time.Minute {
			t.Errorf("away are %d, the first until %v after the start", s.Away, s.BackAt.Sub(began))
		}

		pass(time.Minute)

		if s := g.snapshot(r); s.Away != 0 || !s.BackAt.IsZero() {
			t.Errorf("all is back, and away are %d, the first until %v", s.Away, s.BackAt)
		}

		once(t, 0, 20, sink)
		g.finished()
	})
}

// A lane takes up several messages in one turn: how long one has run is not how long the turn has.
func TestSnapshotKnowsWhenACallBeganInTheMiddleOfATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const takes = 10 * time.Second

		g := newGround(t, 2)
		slow := pipeline.Func("slow", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			if m.Tag == "slow" {
				<-time.After(takes)
			}

			return emit(m)
		})
		r := g.run(job(pipeline.Channel{Name: "work", Stages: []pipeline.Stage{slow}, Timeout: time.Hour, Sink: &shelf{}}), actors.Options{})

		for range 200 {
			g.publish(0, 20)
			pass(time.Millisecond)
		}

		for range 20 { // without a key, so that both queues get some
			if err := g.Publish(t.Context(), "in", []*pipeline.Message{{Tag: "slow"}}); err != nil {
				t.Fatal(err)
			}
		}

		for range 420 {
			pass(takes / 20)

			s := g.snapshot(r)
			for i := range s.Queues {
				if b := s.Queues[i].Blocking; b != nil && b.Doing == "runs" && s.At.Sub(b.Since) > takes {
					t.Errorf("%s runs since %s", b.MessageID, s.At.Sub(b.Since))
				}
			}

			if ran := s.Channels[0].Lanes[0].Running; ran > takes {
				t.Errorf("a call runs for %s", ran)
			}
		}

		g.finished()
	})
}

func TestSnapshotsServeManyReaders(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 2)
		sink := &shelf{}
		r := g.run(job(pipeline.Channel{Name: "work", Lanes: 2, Sink: sink, Stages: []pipeline.Stage{slowly()}, Batch: pipeline.Batch{Messages: 7}}), actors.Options{})

		var readers sync.WaitGroup

		for range 4 {
			readers.Go(func() {
				for range 50 {
					s, err := r.Snapshot(t.Context())
					if err != nil {
						t.Error(err)

						return
					}

					for _, q := range s.Queues {
						if q.Committed > q.Min || q.Min > q.Next || q.Next > q.End {
							t.Errorf("out of order: %+v", q)
						}
					}

					s.Queues, s.Channels = nil, nil // a snapshot belongs to its reader

					pass(17 * time.Millisecond)
				}
			})
		}

		g.publish(0, 200)
		readers.Wait()
		pass(time.Minute)
		once(t, 0, 200, sink)

		s := g.snapshot(r)
		if s.State != "running" || s.Counts.Completed != 200 || s.Counts.Admitted != 200 || s.Channels[0].Counts.Written != 200 {
			t.Errorf("the books say %+v, %+v", s.Counts, s.Channels)
		}
	})
}
