package rocketmq_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// mistaken is a member with a mistake in one of its calls.
type mistaken struct {
	consumer.Member

	commit func(consumer.Member, context.Context, consumer.Lease, consumer.Checkpoint) error
	back   func(consumer.Member, context.Context, *pipeline.Message, time.Duration) error
	dead   func(consumer.Member, context.Context, *pipeline.Message, consumer.Cause) error
	stored func(consumer.Checkpoint) consumer.Checkpoint
	leave  func(consumer.Member, context.Context, consumer.Lease)
}

func (m *mistaken) spoil(of consumer.Member) consumer.Member {
	spoiled := *m
	spoiled.Member = of

	return &spoiled
}

func (m *mistaken) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	if m.commit != nil {
		return m.commit(m.Member, ctx, l, c)
	}

	return m.Member.Commit(ctx, l, c)
}

func (m *mistaken) SendBack(ctx context.Context, back *pipeline.Message, delay time.Duration) error {
	if m.back != nil {
		return m.back(m.Member, ctx, back, delay)
	}

	return m.Member.SendBack(ctx, back, delay)
}

func (m *mistaken) DeadLetter(ctx context.Context, dead *pipeline.Message, c consumer.Cause) error {
	if m.dead != nil {
		return m.dead(m.Member, ctx, dead, c)
	}

	return m.Member.DeadLetter(ctx, dead, c)
}

func (m *mistaken) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	c, err := m.Member.Stored(ctx, q)
	if m.stored != nil && err == nil {
		c = m.stored(c)
	}

	return c, err
}

func (m *mistaken) Release(ctx context.Context, l consumer.Lease) error {
	if m.leave != nil {
		m.leave(m.Member, ctx, l)
	}

	return m.Member.Release(ctx, l)
}

// A harness that finds nothing proves nothing.
func TestMistakesOverTheWireAreFound(t *testing.T) {
	t.Parallel()

	for _, x := range []struct {
		name, rule   string
		above, below mistaken
	}{
		{name: "commits above the lowest unfinished", rule: "I2", above: mistaken{
			commit: func(m consumer.Member, ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
				return m.Commit(ctx, l, consumer.Checkpoint{Next: c.Next + 2})
			},
		}},
		{name: "commits that go back", rule: "I3", above: mistaken{
			commit: func(m consumer.Member, ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
				return m.Commit(ctx, l, consumer.Checkpoint{Next: c.Next / 2 * (c.Next % 2)})
			},
		}},
		{name: "commits after the end", rule: "I4", above: mistaken{
			leave: func(m consumer.Member, ctx context.Context, l consumer.Lease) {
				_ = m.Commit(ctx, l, consumer.Checkpoint{})
			},
		}},
		{name: "commits that are not sent", rule: "I5", below: mistaken{
			commit: func(consumer.Member, context.Context, consumer.Lease, consumer.Checkpoint) error { return nil },
		}},
		{name: "forgets what is stored", rule: "I6", below: mistaken{
			stored: func(consumer.Checkpoint) consumer.Checkpoint { return consumer.Checkpoint{} },
		}},
		{name: "sends nothing back", rule: "I1", below: mistaken{
			back: func(consumer.Member, context.Context, *pipeline.Message, time.Duration) error { return nil },
		}},
		{name: "parks twice", rule: "I8", above: mistaken{
			dead: func(m consumer.Member, ctx context.Context, dead *pipeline.Message, c consumer.Cause) error {
				_ = m.DeadLetter(ctx, dead, c)

				return m.DeadLetter(ctx, dead, c)
			},
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()

			const most = 20

			var seen []string

			for seed := range uint64(most) {
				for _, line := range playSeed(t, seed, x.above.spoil, x.below.spoil).verdict() {
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
