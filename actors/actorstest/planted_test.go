package actorstest

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// plain is a job whose failures go back to the broker.
func plain(plugins.Env) (pipeline.Job, error) {
	return pipeline.Job{
		Name: "plain", Source: pipeline.Source{Topics: []string{"in"}},
		Retry:    pipeline.RetryPolicy{Attempts: 4, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{{Name: "store", Lanes: 3, Sink: pipeline.Discard}},
	}, nil
}

// stuck has a sink that fails for ever, and asks for another try each time.
func stuck(plugins.Env) (pipeline.Job, error) {
	sink := pipeline.SinkFunc(func(context.Context, []*pipeline.Message) error {
		return pipeline.RetryAfter(errPlanned, time.Minute)
	})

	return pipeline.Job{
		Name: "stuck", Source: pipeline.Source{Topics: []string{"in"}}, Retry: pipeline.RetryPolicy{Attempts: 1000},
		Channels: []pipeline.Channel{{Name: "store", Order: pipeline.OrderByQueue, Sink: sink}},
	}, nil
}

// hangs has a sink that does not return in time, when it is called for a message the first time.
func hangs(env plugins.Env) (pipeline.Job, error) {
	job, err := plain(env)

	var (
		mu   sync.Mutex
		seen = make(map[string]bool)
	)

	job.Channels[0].Timeout = time.Second
	job.Channels[0].Order = pipeline.OrderByKey
	job.Channels[0].Sink = pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		mu.Lock()
		first := !seen[batch[0].ID]
		seen[batch[0].ID] = true
		mu.Unlock()

		if first {
			<-time.After(10 * time.Second)
		}

		return nil
	})

	return job, err
}

// slow is a job whose messages wait for its only lane.
func slow(env plugins.Env) (pipeline.Job, error) {
	job, err := plain(env)
	job.Channels[0].Lanes = 1
	job.Channels[0].Sink = pipeline.SinkFunc(func(context.Context, []*pipeline.Message) error {
		<-time.After(time.Second)

		return nil
	})

	return job, err
}

// forgetful answers that nothing of a queue is done.
func forgetful(_ pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error) {
	_, err := call()

	return consumer.Checkpoint{}, err
}

// heedless has the runtime know nothing of the limits that it is held to.
func heedless(c *course) {
	c.limits, c.opts.Limits = consumer.Limits{Messages: 1}, consumer.Limits{}
}

// A harness that finds nothing proves nothing.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()

	for _, x := range []struct {
		name, rule string
		build      Build
		calls      consumertest.Around
		course     func(*course)
	}{
		{name: "commits above the lowest unfinished", rule: "I2", build: plain, calls: consumertest.Around{
			Commit: func(_ consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
				return call(consumer.Checkpoint{Next: c.Next + 3})
			},
		}},
		{name: "commits that go back", rule: "I3", build: plain, calls: consumertest.Around{
			Commit: func(_ consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
				return call(consumer.Checkpoint{Next: c.Next / 2 * (c.Next % 2)})
			},
		}},
		{name: "commits after the end", rule: "I4", build: plain, calls: consumertest.Around{
			Release: func(ctx context.Context, m consumer.Member, l consumer.Lease) error {
				_ = m.Commit(ctx, l, consumer.Checkpoint{})

				return m.Release(ctx, l)
			},
		}},
		{name: "never ends", rule: "I5", build: stuck},
		{name: "commits nothing", rule: "I6", build: plain, calls: consumertest.Around{
			Commit: func(_ consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
				if c.Next > 0 {
					return nil
				}

				return call(c)
			},
		}},
		{name: "forgets what it has stored", rule: "I6", build: plain, calls: consumertest.Around{
			Stored: forgetful,
		}},
		{name: "mixes the order", rule: "I7", build: plain, course: func(c *course) {
			c.plan.Job.Channels[0].Order = pipeline.OrderByKey // the runtime takes the job for an unordered one
		}},
		{name: "sends back twice", rule: "I8", build: plain, calls: consumertest.Around{
			SendBack: func(back *pipeline.Message, _ time.Duration, call func(*pipeline.Message) error) error {
				_ = call(back)

				return call(back)
			},
		}},
		{name: "says a message is back and keeps it", rule: "I1", build: plain, calls: consumertest.Around{
			SendBack: func(back *pipeline.Message, _ time.Duration, call func(*pipeline.Message) error) error {
				other := *back
				other.Origin.Offset ^= 1

				return call(&other)
			},
		}},
		{name: "holds more than its limits", rule: "I9", build: slow, course: heedless},
		{name: "gives a channel more than its limits", rule: "I10", build: slow, course: heedless},
		{name: "gives a call up without a word", rule: "I11", build: hangs, course: func(c *course) {
			c.opts.HungLanes = 1000
			c.deaf = func(e actors.Event) bool {
				_, hung := e.(*actors.LaneHung)

				return hung
			}
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()

			const most = 40

			var seen []string

			broken := "BROKEN " + x.rule + ":"

			for seed := uint64(1); seed <= most; seed++ {
				synctest.Test(t, func(t *testing.T) {
					c := newCourse(t, x.build, Plan{Messages: 40}.withDefaults(), seed, &x.calls)
					if x.course != nil {
						x.course(c)
					}

					c.play()

					for _, l := range c.trace {
						if strings.HasPrefix(l.text, "BROKEN ") {
							seen = append(seen, l.text)
						}
					}
				})

				for _, text := range seen {
					if strings.HasPrefix(text, broken) {
						t.Logf("found by seed %d: %s", seed, text)

						return
					}
				}
			}

			t.Errorf("%d seeds have not seen %s broken, but %q", most, x.rule, seen)
		})
	}
}

// What the sink has stored and what the result says agree.
func TestCheckIsGivenWhatHasBecomeOfMessages(t *testing.T) {
	t.Parallel()

	var mu sync.Mutex

	stored := make(map[string]bool)

	build := func(plugins.Env) (pipeline.Job, error) {
		job, err := plain(plugins.Env{})
		job.Channels[0].Stages = []pipeline.Stage{pipeline.Filter("even", func(m *pipeline.Message) bool { return m.Key != "k1" })}
		job.Channels[0].Sink = pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
			mu.Lock()
			defer mu.Unlock()

			for _, m := range batch {
				stored[m.ID] = true
			}

			return nil
		})

		return job, err
	}

	synctest.Test(t, func(t *testing.T) {
		c := newCourse(t, build, Plan{}.withDefaults(), 3, nil)
		c.play()

		r := c.result()
		if v := c.verdict(); v != "" || len(r.Ends) != defaultMessages || r.Starts == 0 {
			t.Fatalf("%s%+v", v, r)
		}

		for i, e := range r.Ends {
			if filtered := i%7 == 1; e.Dead || e.Dropped || (e.Writes == 0) != filtered || stored[e.ID] == filtered {
				t.Errorf("%+v, stored %v", e, stored[e.ID])
			}
		}
	})
}
