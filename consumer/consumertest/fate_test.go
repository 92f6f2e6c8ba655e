package consumertest_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
)

func TestFatesTellWhatHasBecomeOfEachMessage(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(4)

		m := b.join("me")
		l := b.only(m)
		messages := b.all(m, l, 0)

		if err := errors.Join(
			m.SendBack(b.ctx(), messages[0], time.Minute), m.SendBack(b.ctx(), messages[0], time.Minute),
			m.DeadLetter(b.ctx(), messages[1], consumer.Cause{}), m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 3}),
		); err != nil {
			b.Fatal(err)
		}

		want := []string{l.Queue.String() + " at {3 []} of 4", "1 delayed"}
		if behind := b.Behind(group, "", topic); !slices.Equal(behind, want) {
			b.Errorf("behind: %q, want %q", behind, want)
		}

		back := consumertest.Fate{Delivered: 1, Queue: l.Queue, SentBack: 1}
		if got := b.Fates(group, topic)[messages[0].ID]; got != back {
			b.Errorf("sent back and not due: %+v", got)
		}

		<-time.After(2 * time.Minute)

		fates := b.Fates(group, topic)

		if len(fates) != len(messages) {
			b.Errorf("%d fates of %d messages", len(fates), len(messages))
		}

		if got := fates[messages[0].ID]; got.Delivered != 2 || got.Queue.Topic != consumer.RetryTopic(group) || got.SentBack != 1 {
			b.Errorf("delivered again: %+v", got)
		}

		if got, want := fates[messages[1].ID], (consumertest.Fate{Delivered: 1, Queue: l.Queue, Offset: 1, Dead: 1}); got != want {
			b.Errorf("dead: %+v, want %+v", got, want)
		}
	})
}

func TestDrawnFaultsAreThoseOfTheirSeed(t *testing.T) {
	t.Parallel()

	kinds := make(map[consumertest.Op]int)

	for seed := range uint64(100) {
		a := consumertest.DrawFaults(rand.New(rand.NewPCG(seed, 0)))
		b := consumertest.DrawFaults(rand.New(rand.NewPCG(seed, 0)))

		if a.Delay != b.Delay || a.Gap != b.Gap || len(a.Refuse) != len(b.Refuse) || a.Wrong != 0 {
			t.Errorf("seed %d: %+v and %+v", seed, a, b)
		}

		for op := range a.Refuse {
			kinds[op]++
		}
	}

	if len(kinds) < 9 || kinds[consumertest.OpCommit] == 100 {
		t.Errorf("of a hundred seeds so many refuse: %v", kinds)
	}
}
