package consumertest_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// calls are the calls that a fault can hit, each ready to be made once.
func (b *bundle) calls() map[consumertest.Op]func() error {
	b.publish(2)

	m := b.join("")
	l := b.only(m)
	messages := b.all(m, l, 0)

	if err := m.Commit(b.ctx(), l, consumer.Checkpoint{}); err != nil {
		b.Fatal(err)
	}

	return map[consumertest.Op]func() error{
		consumertest.OpPublish: func() error {
			return b.Publish(b.ctx(), topic, []*pipeline.Message{{Body: []byte("x")}})
		},
		consumertest.OpJoin: func() error {
			_, err := b.Join(b.ctx(), consumer.Subscription{Group: "other", Topics: []string{topic}})

			return err
		},
		consumertest.OpAssigned: func() error {
			_, err := m.Assigned(b.ctx(), 0)

			return err
		},
		consumertest.OpPull: func() error {
			_, err := b.pull(m, l, 0)

			return err
		},
		consumertest.OpFind: func() error {
			_, err := m.Find(b.ctx(), l.Queue, pipeline.Last)

			return err
		},
		consumertest.OpStored: func() error {
			_, err := m.Stored(b.ctx(), l.Queue)

			return err
		},
		consumertest.OpCommit:     func() error { return m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 1}) },
		consumertest.OpSendBack:   func() error { return m.SendBack(b.ctx(), messages[0], 0) },
		consumertest.OpDeadLetter: func() error { return m.DeadLetter(b.ctx(), messages[1], consumer.Cause{}) },
		consumertest.OpRelease:    func() error { return m.Release(b.ctx(), l) },
	}
}

// effects is what the calls that change something have changed.
func (b *bundle) effects() map[consumertest.Op]bool {
	standing := b.Standings(group, topic)[0]

	return map[consumertest.Op]bool{
		consumertest.OpPublish:    standing.End > 2,
		consumertest.OpCommit:     standing.Checkpoint.Next == 1,
		consumertest.OpSendBack:   len(b.Messages(consumer.RetryTopic(group))) > 0,
		consumertest.OpDeadLetter: len(b.Messages(consumer.DeadLetterTopic(group))) > 0,
	}
}

func always(op consumertest.Op) map[consumertest.Op]float64 {
	return map[consumertest.Op]float64{op: 1}
}

func TestRefusedCallsFailAndDoNothing(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		for op, call := range b.calls() {
			b.SetFaults(consumertest.Faults{Refuse: always(op)})

			if err := call(); !errors.Is(err, consumertest.ErrInjected) {
				b.Errorf("%s: %v, want ErrInjected", op, err)
			}

			if b.effects()[op] {
				b.Errorf("%s was refused and took effect", op)
			}

			b.SetFaults(consumertest.Faults{})

			if err := call(); err != nil {
				b.Errorf("%s without a fault: %v", op, err)
			}

			if changed, changes := b.effects()[op]; changes && !changed {
				b.Errorf("%s took no effect", op)
			}
		}
	})
}

func TestLostAnswersTakeEffect(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		for op, call := range b.calls() {
			b.SetFaults(consumertest.Faults{Lose: always(op)})

			if err := call(); !errors.Is(err, consumertest.ErrInjected) {
				b.Errorf("%s: %v, want ErrInjected", op, err)
			}

			if changed, changes := b.effects()[op]; changes && !changed {
				b.Errorf("%s took no effect", op)
			}

			b.SetFaults(consumertest.Faults{})

			if err := call(); err != nil {
				b.Errorf("%s once more: %v", op, err)
			}
		}

		if n := len(b.Messages(consumer.RetryTopic(group))); n != 1 {
			b.Errorf("%d copies of a message whose sending back was repeated, want 1", n)
		}

		if n := len(b.Messages(consumer.DeadLetterTopic(group))); n != 1 {
			b.Errorf("%d dead letters of a message whose dead-lettering was repeated, want 1", n)
		}
	})
}

func TestSlowCallsTakeTimeAndHeedTheirContext(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		const longest = time.Minute

		for op, call := range b.calls() {
			b.SetFaults(consumertest.Faults{Slow: always(op), Delay: longest})

			start := time.Now()
			err := call()

			if took := time.Since(start); err != nil || took == 0 || took > longest {
				b.Errorf("%s took %v (%v), want up to %v", op, took, err, longest)
			}
		}

		early, late := 0, 0

		for range 100 {
			b.SetFaults(consumertest.Faults{Slow: always(consumertest.OpPublish), Delay: time.Hour})

			ctx, cancel := context.WithTimeout(b.ctx(), time.Microsecond)
			before := b.Standings(group, topic)[0].End
			err := b.Publish(ctx, topic, []*pipeline.Message{{}})

			if !errors.Is(err, context.DeadlineExceeded) {
				b.Errorf("an impatient call: %v", err)
			}

			if b.Standings(group, topic)[0].End > before {
				late++
			} else {
				early++
			}

			cancel()
		}

		if early == 0 || late == 0 {
			b.Errorf("of 100 slow calls %d were slow before their effect, %d after it; want some of each", early, late)
		}
	})
}

func TestGapsLoseNoMessage(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{Seed: 1}, 1, func(b *bundle) {
		const n = 40

		b.SetFaults(consumertest.Faults{Gap: 0.7})
		b.publish(n)

		m := b.join("")
		l := b.only(m)
		gaps := make(map[pipeline.Offset]bool)
		from := pipeline.Offset(0)
		next := pipeline.Offset(0)

		var got []string

		for next < b.Standings(group, topic)[0].End {
			batch, err := m.Pull(b.ctx(), l, next, consumer.Limit{Messages: 3, Bytes: 1 << 20})
			if err != nil {
				b.Fatal(err)
			}

			for _, message := range batch.Messages {
				gaps[message.Origin.Offset-from] = true
				from = message.Origin.Offset + 1
				got = append(got, string(message.Body))
			}

			next = batch.Next
		}

		want := make([]string, n)
		for i := range want {
			want[i] = strconv.Itoa(i)
		}

		if !slices.Equal(got, want) {
			b.Errorf("got %v", got)
		}

		for _, gap := range []pipeline.Offset{0, 1, 100, 1_000_000} {
			if !gaps[gap] {
				b.Errorf("no gap of %d among %v", gap, gaps)
			}
		}
	})
}

func TestGapsAreBeforeAndBehindMessages(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		const gap = 10

		b.SetFaults(consumertest.Faults{Gap: 1, Gaps: []int64{gap}})

		m := b.join("")
		l := b.only(m)
		before, behind := 0, 0

		for range 50 {
			end := b.Standings(group, topic)[0].End
			b.publish(1)

			switch at := b.all(m, l, end)[0].Origin.Offset; at {
			case end + gap:
				before++
			case end:
				behind++

				if batch, err := b.pull(m, l, end+1); err != nil || len(batch.Messages) != 0 || batch.Next != end+1+gap {
					b.Fatalf("a pull inside of the gap: %+v, %v, want next %d", batch, err, end+1+gap)
				}
			default:
				b.Fatalf("a message at %d, want it at %d or %d", at, end, end+gap)
			}
		}

		if before == 0 || behind == 0 {
			b.Errorf("%d gaps before and %d behind messages, want some of each", before, behind)
		}
	})
}

func TestQuestionsForOffsetsAreAnsweredWrong(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(3)

		m := b.join("")
		l := b.only(m)

		if err := m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 2}); err != nil {
			b.Fatal(err)
		}

		for answer, want := range map[consumertest.Answer]struct {
			next pipeline.Offset
			err  error
		}{
			consumertest.AnswerMinusOne: {-1, nil},
			consumertest.AnswerZero:     {0, nil},
			consumertest.AnswerAbsent:   {0, consumer.ErrNoCheckpoint},
		} {
			b.SetFaults(consumertest.Faults{Wrong: 1, Answers: []consumertest.Answer{answer}})

			c, err := m.Stored(b.ctx(), l.Queue)
			if c.Next != want.next || !errors.Is(err, want.err) {
				b.Errorf("answer %d: stored is %v, %v", answer, c, err)
			}

			if o, err := m.Find(b.ctx(), l.Queue, pipeline.Last); o != want.next || err != nil {
				b.Errorf("answer %d: found %d, %v", answer, o, err)
			}
		}

		b.SetFaults(consumertest.Faults{})

		if c, err := m.Stored(b.ctx(), l.Queue); err != nil || c.Next != 2 {
			b.Errorf("stored is %v, %v after the faults; want 2", c, err)
		}
	})
}

func TestACommitPrunes(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(5)
		b.SetFaults(consumertest.Faults{PruneOnCommit: true})

		m := b.join("")
		l := b.only(m)

		if err := m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 3}); err != nil {
			b.Fatal(err)
		}

		wantOutOfRange(b, m, l, 2, consumer.OutOfRangeError{Queue: l.Queue, From: 2, First: 3, End: 5})

		if messages := b.all(m, l, 3); len(messages) != 2 {
			b.Errorf("%d messages are left, want 2", len(messages))
		}

		if first, err := m.Find(b.ctx(), l.Queue, pipeline.First); first != 3 || err != nil {
			b.Errorf("the first offset is %d, %v; want 3", first, err)
		}

		if n := len(b.Messages(topic)); n != 5 {
			b.Errorf("the test sees %d messages, want all 5", n)
		}
	})
}

func wantOutOfRange(b *bundle, m consumer.Member, l consumer.Lease, from pipeline.Offset, want consumer.OutOfRangeError) {
	b.Helper()

	_, err := b.pull(m, l, from)
	if outside, ok := errors.AsType[*consumer.OutOfRangeError](err); !ok || *outside != want {
		b.Errorf("a pull from %d: %v, want %v", from, err, &want)
	}
}

func TestASeedRepeatsItsFaults(t *testing.T) {
	t.Parallel()

	outcomes := func(seed uint64) (refused []bool) {
		inBubble(t, consumertest.Config{Seed: seed}, 1, func(b *bundle) {
			b.SetFaults(consumertest.Faults{Refuse: map[consumertest.Op]float64{consumertest.OpPublish: 0.5}})

			for range 64 {
				err := b.Publish(b.ctx(), topic, []*pipeline.Message{{}})
				refused = append(refused, err != nil)
			}
		})

		return refused
	}

	first := outcomes(7)
	if !slices.Equal(first, outcomes(7)) {
		t.Error("the same seed gives different faults")
	}

	if slices.Equal(first, outcomes(8)) {
		t.Error("another seed gives the same faults")
	}

	if !slices.Contains(first, true) || !slices.Contains(first, false) {
		t.Errorf("at a rate of a half: %v", first)
	}
}
