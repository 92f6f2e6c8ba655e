package rocketmq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// A harness that finds nothing proves nothing.
func TestMistakesOverTheWireAreFound(t *testing.T) {
	t.Parallel()

	for _, x := range []struct {
		name, rule   string
		above, below consumertest.Around
	}{
		{name: "commits above the lowest unfinished", rule: "I2", above: consumertest.Around{
			Commit: func(_ consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
				return call(consumer.Checkpoint{Next: c.Next + 2})
			},
		}},
		{name: "commits that go back", rule: "I3", above: consumertest.Around{
			Commit: func(_ consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
				return call(consumer.Checkpoint{Next: c.Next / 2 * (c.Next % 2)})
			},
		}},
		{name: "commits after the end", rule: "I4", above: consumertest.Around{
			Release: func(ctx context.Context, m consumer.Member, l consumer.Lease) error {
				_ = m.Commit(ctx, l, consumer.Checkpoint{})

				return m.Release(ctx, l)
			},
		}},
		{name: "commits that are not sent", rule: "I5", below: consumertest.Around{
			Commit: func(consumer.Lease, consumer.Checkpoint, func(consumer.Checkpoint) error) error { return nil },
		}},
		{name: "forgets what is stored", rule: "I6", below: consumertest.Around{
			Stored: func(_ pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error) {
				_, err := call()

				return consumer.Checkpoint{}, err
			},
		}},
		{name: "sends nothing back", rule: "I1", below: consumertest.Around{
			SendBack: func(*pipeline.Message, time.Duration, func(*pipeline.Message) error) error { return nil },
		}},
		{name: "parks twice", rule: "I8", above: consumertest.Around{
			DeadLetter: func(dead *pipeline.Message, _ consumer.Cause, call func(*pipeline.Message) error) error {
				_ = call(dead)

				return call(dead)
			},
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()

			const most = 20

			var seen []string

			for seed := range uint64(most) {
				for _, line := range playSeed(t, seed, &x.above, &x.below).verdict() {
					if seen = append(seen, line); strings.HasPrefix(line, x.rule) {
						t.Logf("found by seed %d: %s", seed, line)

						return
					}
				}
			}

			t.Errorf("%d seeds have not seen %s broken, but %q", most, x.rule, seen)
		})
	}
}
