package admin_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// way is one way in which an offset can stand still, and how it comes about.
type way struct {
	queues int
	// come makes it so, and returns when it is.
	come func(w *world)
	// check looks at the answer for a queue with this cause, where there is more to see; whole at that for the job.
	check func(t *testing.T, q *admin.Why)
	whole bool
}

// atOnce is a way of a job with one channel over three messages.
func atOnce(wait time.Duration, faults consumertest.Faults, c pipeline.Channel, check func(*testing.T, *admin.Why)) way {
	return way{queues: 1, check: check, come: func(w *world) {
		w.publish(3)
		w.SetFaults(faults)

		c.Name = "work"
		w.run(w, job(c), actors.Options{})
		pass(wait)
	}}
}

func messageIs(doing string, lane int) func(*testing.T, *admin.Why) {
	return func(t *testing.T, q *admin.Why) {
		t.Helper()

		b := q.Blocking
		if b == nil || b.Offset != 0 || b.MessageID != "m0" || b.Key != "k0" || b.Doing != doing || b.Lane != lane ||
			b.Channel != "work" || b.Attempts != 5 || b.Next == "" {
			t.Errorf("blocking: %+v", b)
		}
	}
}

// waysOfMessages are those in which a message is in the way.
func waysOfMessages(open chan struct{}) map[admin.Cause]way {
	one := named("m0")
	none := consumertest.Faults{}

	return map[admin.Cause]way{
		admin.Runs: atOnce(20*time.Second, none, pipeline.Channel{Stages: []pipeline.Stage{gate(one, open, true)}},
			func(t *testing.T, q *admin.Why) {
				t.Helper()
				messageIs("runs", 0)(t, q)

				if s := q.Blocking.Stack; len(s) == 0 || !strings.Contains(s[0], "world_test.go:") || q.Blocking.Since.IsZero() {
					t.Errorf("since %s, at %q", q.Blocking.Since, s)
				}
			}),
		admin.Hangs: atOnce(10*time.Second+600*time.Millisecond, none,
			pipeline.Channel{Stages: []pipeline.Stage{gate(one, open, false)}, Timeout: 10 * time.Second}, messageIs("runs", 0)),
		admin.InBatch: atOnce(20*time.Second, none,
			pipeline.Channel{Batch: pipeline.Batch{Messages: 1000, Every: time.Hour}}, messageIs("waits in a batch", 0)),
		admin.RetryInPlace: atOnce(20*time.Second, none, pipeline.Channel{
			Order: pipeline.OrderByKey, Stages: []pipeline.Stage{failing(one, pipeline.RetryAfter(errBroken, time.Hour))},
		}, messageIs("is retried later", 0)),
		admin.SendBackRefused: atOnce(20*time.Second, refuse(consumertest.OpSendBack),
			pipeline.Channel{Stages: []pipeline.Stage{failing(one, errBroken)}}, messageIs("goes back to the broker", -1)),
		admin.DeadLetterRefused: atOnce(20*time.Second, refuse(consumertest.OpDeadLetter),
			pipeline.Channel{Stages: []pipeline.Stage{failing(one, pipeline.Reject(errBroken))}},
			messageIs("goes to the dead letters", -1)),
		admin.WaitsForLane: {
			queues: 2,
			come: func(w *world) {
				w.run(w, job(pipeline.Channel{Name: "work", Stages: []pipeline.Stage{gate(named("m0"), open, true)}}), actors.Options{})
				synctest.Wait()
				w.publish(1)
				pass(time.Second)
				w.publish(20)
				pass(20 * time.Second)
			},
			check: func(t *testing.T, q *admin.Why) {
				t.Helper()

				if len(q.Lanes) != 1 || q.Lanes[0].Stage != "gate" || len(q.Lanes[0].Stack) == 0 {
					t.Errorf("lanes %+v", q.Lanes)
				}
			},
		},
		admin.BehindKey: {queues: 2, come: comeBehindKey},
		admin.HandedOn: {queues: 1, come: func(w *world) { comeHandedOn(w, open) }, check: func(t *testing.T, q *admin.Why) {
			t.Helper()

			if b := q.Blocking; b == nil || b.MessageID != "m0" || b.Next == "" || len(q.Lanes) != 1 || q.Lanes[0].Stage != "gather" {
				t.Errorf("blocking %+v, lanes %+v", b, q.Lanes)
			}
		}},
		admin.BreakerOpen: {
			queues: 1,
			come: func(w *world) {
				w.publish(30)
				w.run(w, job(pipeline.Channel{Name: "work", Order: pipeline.OrderByKey, Stages: []pipeline.Stage{
					failing(func(*pipeline.Message) bool { return true }, errBroken),
				}}), actors.Options{})
				pass(20 * time.Second)
			},
			check: func(t *testing.T, q *admin.Why) {
				t.Helper()
				messageIs(actors.WaitsForBreaker, 0)(t, q)

				b := q.Blocking.Breaker
				if b == nil || b.Stage != "picky" || b.Failed != 10 || b.Seen != 10 || b.Tried == 0 || b.NextAt.IsZero() ||
					!strings.Contains(b.LastError, errBroken.Error()) || !strings.Contains(q.Because, b.LastError) {
					t.Errorf("breaker %+v, because %q", b, q.Because)
				}
			},
		},
	}
}

// waysOfBrokers are those in which the broker, or somebody, is in the way.
func waysOfBrokers(open chan struct{}) map[admin.Cause]way {
	plain := func() pipeline.Job { return job(pipeline.Channel{Name: "work"}) }
	held := func() pipeline.Job {
		return job(pipeline.Channel{Name: "work", Stages: []pipeline.Stage{gate(named("m0"), open, false)}})
	}

	// broken breaks the calls of a broker when a job runs on it, and then publishes.
	broken := func(op consumertest.Op, wait time.Duration) way {
		return way{queues: 1, come: func(w *world) {
			w.run(w, plain(), actors.Options{})
			pass(time.Second)
			w.SetFaults(refuse(op))
			w.publish(3)
			pass(wait)
		}}
	}

	return map[admin.Cause]way{
		admin.CommitFails: broken(consumertest.OpCommit, 20*time.Second),
		admin.PullFails:   broken(consumertest.OpPull, 40*time.Second),
		admin.PullUnanswered: {queues: 1, come: func(w *world) {
			w.run(silent{Broker: w, pull: true}, plain(), actors.Options{})
			pass(2 * time.Minute)
		}},
		admin.LeaseEnded: {queues: 1, come: func(w *world) {
			w.run(silent{Broker: w, assigned: true}, plain(), actors.Options{})
			pass(10 * time.Second)

			if err := w.Reassign("job", queue(0), true); err != nil {
				w.t.Fatal(err)
			}

			pass(time.Minute)
		}},
		admin.StartUnanswered: {queues: 1, come: func(w *world) {
			w.run(silent{Broker: w, stored: true}, plain(), actors.Options{})
			pass(10 * time.Second)
		}},
		admin.StartFails: {queues: 1, come: func(w *world) {
			w.SetFaults(refuse(consumertest.OpStored))
			w.run(w, plain(), actors.Options{})
			pass(10 * time.Second)
		}},
		admin.Paused: {queues: 1, come: func(w *world) {
			r := w.run(w, plain(), actors.Options{})
			pass(time.Second)

			if err := r.Pause(w.t.Context(), queue(0), "by Ada, until Monday"); err != nil {
				w.t.Error(err)
			}

			pass(time.Minute)
		}, check: func(t *testing.T, q *admin.Why) {
			t.Helper()

			if !strings.Contains(q.Because, "by Ada") || q.Waits != "a pause" || q.WaitsSince.IsZero() {
				t.Errorf("%s; waits for %s since %s", q.Because, q.Waits, q.WaitsSince)
			}
		}},
		admin.Rewound: {queues: 1, come: func(w *world) {
			w.publish(3)
			w.run(w, plain(), actors.Options{Rewind: actors.RewindWait})
			pass(10 * time.Second)

			if err := w.Reassign("job", queue(0), true); err != nil { // at once: a last commit would repair it
				w.t.Fatal(err)
			}

			w.RollBack("job", queue(0), consumer.Checkpoint{Next: 1})
			pass(20 * time.Second)
		}},
		admin.FormerRun: {queues: 1, come: func(w *world) {
			w.publish(3)
			w.run(w, held(), actors.Options{RevokeBudget: time.Second})
			pass(10 * time.Second)
			w.reassign()
			pass(20 * time.Second)
		}},
		admin.Closing: {queues: 1, come: func(w *world) {
			w.publish(3)
			r := w.run(w, held(), actors.Options{RevokeBudget: time.Minute})
			pass(time.Second)

			go func() { _ = r.Seek(w.t.Context(), queue(0), 1) }()

			pass(time.Second)
		}},
		admin.NoMessages: {queues: 1, come: func(w *world) {
			w.publish(3)
			w.run(w, plain(), actors.Options{})
			pass(20 * time.Second)
		}},
		admin.Moves: {queues: 1, come: func(w *world) {
			w.publish(3)
			w.run(w, held(), actors.Options{})
			pass(time.Second)
		}},
	}
}

// waysOfJobs are those in which the whole job has nothing to go on with.
func waysOfJobs(open chan struct{}) map[admin.Cause]way {
	plain := job(pipeline.Channel{Name: "work"})

	return map[admin.Cause]way{
		admin.JobStarts: {queues: 1, whole: true, come: func(w *world) {
			w.run(w, job(pipeline.Channel{Name: "work", Sink: slowDoor{may: open}}), actors.Options{})
			pass(10 * time.Second)
		}},
		admin.NoQueue: {queues: 1, whole: true, come: func(w *world) {
			for _, instance := range []string{"a", "b", "c"} { // the topic and its retry topic have a queue each
				w.run(w, plain, actors.Options{Instance: instance})
			}

			pass(time.Minute)
		}},
		admin.JobDrains: {queues: 1, whole: true, come: func(w *world) {
			w.publish(3)
			r := w.run(w, job(pipeline.Channel{Name: "work", Stages: []pipeline.Stage{gate(named("m0"), open, true)}}), actors.Options{})
			pass(time.Second)

			go r.Drain(time.Hour)

			pass(time.Second)
		}},
		admin.JobStopped: {queues: 1, whole: true, come: func(w *world) {
			absent := plain
			absent.Source.Topics = []string{"absent"}
			w.run(w, absent, actors.Options{})
			pass(10 * time.Second)
		}},
	}
}

func (w *world) reassign() {
	w.t.Helper()

	if err := w.Reassign("job", queue(0), false); err != nil {
		w.t.Fatal(err)
	}
}

func TestWhyNamesEachWayInWhichAnOffsetCanStandStill(t *testing.T) {
	t.Parallel()

	for _, ways := range []func(chan struct{}) map[admin.Cause]way{waysOfMessages, waysOfBrokers, waysOfJobs} {
		for cause := range ways(nil) {
			t.Run(string(cause), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					open := make(chan struct{})
					c := ways(open)[cause]
					w := setup(t, c.queues)

					defer close(open) // before the jobs are stopped

					c.come(w)
					c.judge(t, w.why(), cause)
				})
			})
		}
	}
}

// judge looks for the cause in an answer.
func (c way) judge(t *testing.T, a admin.Answers, cause admin.Cause) {
	t.Helper()

	for i := range a.Jobs {
		j := &a.Jobs[i]
		if c.whole && j.Cause == cause && j.Because != "" {
			return
		}

		for k := range j.Queues {
			q := &j.Queues[k]
			if c.whole || q.Cause != cause || q.Queue.Topic != "in" {
				continue
			}

			if q.Because == "" || q.Stands != (cause != admin.NoMessages && cause != admin.Moves) {
				t.Errorf("because %q, stands %t", q.Because, q.Stands)
			}

			if c.check != nil {
				c.check(t, q)
			}

			return
		}
	}

	t.Errorf("it is not said: %+v", a)
}

func TestTheLimitIsNamedThatCreditIsShortOf(t *testing.T) {
	t.Parallel()

	for name, limits := range map[string]consumer.Limits{
		"messages": {Messages: 5}, "span": {Span: 5}, "bytes": {Bytes: 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t, 1)
				open := make(chan struct{})

				defer close(open)

				held := func(m *pipeline.Message) bool { return name != "span" || m.ID == "m0" }
				c := pipeline.Channel{Name: "work", Lanes: 2, Stages: []pipeline.Stage{gate(held, open, true)}}

				w.publish(50)
				w.run(w, job(c), actors.Options{Limits: limits})
				pass(20 * time.Second)

				a := w.why()
				i := slices.IndexFunc(a.Jobs[0].Queues, func(q admin.Why) bool { return q.Queue == queue(0) })

				if q := a.Jobs[0].Queues[i]; q.Waits != "credit" || q.Limit != name {
					t.Errorf("it waits for %q, limit %q", q.Waits, q.Limit)
				}
			})
		})
	}
}

func TestAWarningOfTheGroupIsHandedOn(t *testing.T) {
	t.Parallel()

	if w := admin.Explain(&actors.Snapshot{Job: "j", State: "running", Warning: "mixed"}); w.Warning != "mixed" || w.Cause != "" {
		t.Errorf("the answer is %+v", w)
	}
}

func TestTheDocumentListsEveryCause(t *testing.T) {
	t.Parallel()

	text, err := os.ReadFile("../../docs/why.md")
	if err != nil {
		t.Fatal(err)
	}

	var causes []admin.Cause

	for _, ways := range []func(chan struct{}) map[admin.Cause]way{waysOfMessages, waysOfBrokers, waysOfJobs} {
		for cause := range ways(nil) {
			causes = append(causes, cause)
		}
	}

	for _, cause := range causes {
		if !strings.Contains(string(text), "| `"+string(cause)+"` |") {
			t.Errorf("docs/why.md does not have %s", cause)
		}
	}

	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\|").FindAllSubmatch(text, -1) {
		if !slices.Contains(causes, admin.Cause(row[1])) {
			t.Errorf("docs/why.md has %s, which no test makes", row[1])
		}
	}
}
