package consumertest_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

func TestACrashedMemberReachesNothingAndItsQueuesGoOn(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(4)

		m := b.join("first")
		l := b.only(m)
		messages := b.all(m, l, 0)

		if err := errors.Join(
			m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 1}),
			m.SendBack(b.ctx(), messages[1], 0),
			m.DeadLetter(b.ctx(), messages[3], consumer.Cause{}),
		); err != nil {
			b.Fatal(err)
		}

		waiting := make(chan error)

		go func() {
			_, err := b.pull(m, l, 4)
			waiting <- err
		}()

		b.Crash(group, "first")

		if err := <-waiting; !errors.Is(err, consumertest.ErrCrashed) {
			b.Errorf("a pull under way: %v, want ErrCrashed", err)
		}

		for name, err := range map[string]error{
			"commit":    m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 4}),
			"send back": m.SendBack(b.ctx(), messages[2], 0),
			"leave":     m.Leave(b.ctx()),
		} {
			if !errors.Is(err, consumertest.ErrCrashed) {
				b.Errorf("%s: %v, want ErrCrashed", name, err)
			}
		}

		start := time.Now()
		heir := b.join("first") // the name is free again
		again := b.only(heir)

		if again.Epoch == l.Epoch || time.Since(start) > 0 {
			b.Errorf("lease %v after %v follows on %v", again, time.Since(start), l)
		}

		c, err := heir.Stored(b.ctx(), l.Queue)
		if err != nil || c.Next != 2 || !slices.Equal(c.Done, []consumer.Run{{From: 3, To: 4}}) {
			b.Errorf("stored is %v, %v; want 2 and 3, with what was returned", c, err)
		}
	})
}

func TestAQueueIsReassignedAtOnce(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		m := b.join("")
		old := b.only(m)
		_, known := b.leases(m, 0)
		waiting := make(chan error)

		go func() {
			_, err := b.pull(m, old, 0)
			waiting <- err
		}()

		if err := b.Reassign(group, old.Queue, true); err != nil {
			b.Fatal(err)
		}

		leases, _ := b.leases(m, known)
		if len(leases) != 1 || leases[0].Queue != old.Queue || leases[0].Epoch <= old.Epoch {
			b.Errorf("leases %v, want the queue in a new epoch after %v", leases, old)
		}

		if err := <-waiting; !errors.Is(err, consumer.ErrNotOwner) {
			b.Errorf("a pull under the old lease: %v, want ErrNotOwner", err)
		}

		if err := m.Commit(b.ctx(), old, consumer.Checkpoint{}); !errors.Is(err, consumer.ErrNotOwner) {
			b.Errorf("a commit under the old lease: %v, want ErrNotOwner", err)
		}

		if err := m.Commit(b.ctx(), leases[0], consumer.Checkpoint{}); err != nil {
			b.Errorf("a commit under the new lease: %v", err)
		}
	})
}

func TestAQueueIsReassignedWhenItIsReleasedOrPatienceEnds(t *testing.T) {
	t.Parallel()

	const patience = 7 * time.Second

	for name, releases := range map[string]bool{"released": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			inBubble(t, consumertest.Config{Patience: patience}, 1, func(b *bundle) {
				m := b.join("")
				old := b.only(m)
				_, known := b.leases(m, 0)
				start := time.Now()

				if err := b.Reassign(group, old.Queue, false); err != nil {
					b.Fatal(err)
				}

				leases, known := b.leases(m, known)
				if len(leases) != 0 {
					b.Fatalf("leases %v while the queue is taken away", leases)
				}

				if err := m.Commit(b.ctx(), old, consumer.Checkpoint{}); err != nil {
					b.Errorf("a last commit: %v", err)
				}

				if _, err := b.pull(m, old, 0); !errors.Is(err, consumer.ErrNotOwner) {
					b.Errorf("a pull of a queue that was taken away: %v, want ErrNotOwner", err)
				}

				want := patience

				if releases {
					want = 0

					if err := m.Release(b.ctx(), old); err != nil {
						b.Fatal(err)
					}
				}

				leases, _ = b.leases(m, known)
				if took := time.Since(start); len(leases) != 1 || leases[0].Epoch <= old.Epoch || took != want {
					b.Fatalf("leases %v after %v, want a new one after %v", leases, took, want)
				}

				// A held pull outlasts the patience with the old lease, which is nothing to the new one.
				if _, err := b.pull(m, leases[0], 0); err != nil || time.Since(start) <= patience {
					b.Errorf("a pull under the new lease: %v after %v", err, time.Since(start))
				}

				if err := m.Commit(b.ctx(), old, consumer.Checkpoint{}); !errors.Is(err, consumer.ErrNotOwner) {
					b.Errorf("a commit under the old lease: %v, want ErrNotOwner", err)
				}
			})
		})
	}
}

func TestAQueueOfNobodyCannotBeReassigned(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		if err := b.Reassign(group, pipeline.Queue{Topic: topic}, true); err == nil {
			b.Error("no error")
		}
	})
}

func TestAReleaseOfAQueueThatWasNotTakenAwayChangesNothing(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		m := b.join("")
		l := b.only(m)

		if err := errors.Join(m.Release(b.ctx(), l), m.Commit(b.ctx(), l, consumer.Checkpoint{})); err != nil {
			b.Error(err)
		}
	})
}

func TestAHeldPullEndsEmpty(t *testing.T) {
	t.Parallel()

	const hold = 3 * time.Second

	inBubble(t, consumertest.Config{Hold: hold}, 1, func(b *bundle) {
		b.publish(2)

		m := b.join("")
		l := b.only(m)
		start := time.Now()
		batch, err := b.pull(m, l, 2)

		if err != nil || len(batch.Messages) != 0 || batch.Next != 2 || batch.End != 2 || time.Since(start) != hold {
			b.Errorf("%+v, %v after %v; want nothing after %v", batch, err, time.Since(start), hold)
		}
	})
}

func TestADamagedRecordStopsThePullAtIt(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(4)

		m := b.join("")
		l := b.only(m)
		rot := errors.New("rotten")

		if err := b.Damage(l.Queue, 2, rot); err != nil {
			b.Fatal(err)
		}

		if batch, err := b.pull(m, l, 0); err != nil || len(batch.Messages) != 2 || batch.Next != 2 {
			b.Errorf("%+v, %v; want what is before the damage", batch, err)
		}

		_, err := b.pull(m, l, 2)

		damaged, ok := errors.AsType[*consumer.DamagedError](err)
		if !ok || damaged.Queue != l.Queue || damaged.Offset != 2 || !errors.Is(err, rot) {
			b.Errorf("a pull of the damaged record: %v", err)
		}

		if n := len(b.all(m, l, 3)); n != 1 {
			b.Errorf("%d messages behind the damage, want 1", n)
		}

		if err := b.Damage(l.Queue, 2, nil); err != nil || len(b.all(m, l, 2)) != 2 {
			b.Errorf("the repaired record does not come: %v", err)
		}
	})
}

func TestOldRecordsAreTrimmed(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(4)

		m := b.join("")
		l := b.only(m)
		message := b.all(m, l, 0)[0]

		if err := b.Trim(l.Queue, 100); err != nil { // not behind the end
			b.Fatal(err)
		}

		wantOutOfRange(b, m, l, 3, consumer.OutOfRangeError{Queue: l.Queue, From: 3, First: 4, End: 4})

		if err := m.SendBack(b.ctx(), message, 0); err == nil {
			b.Error("a message that is gone was sent back")
		}
	})
}

func TestABrokerComesBackEmpty(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(3)

		m := b.join("")
		l := b.only(m)
		messages := b.all(m, l, 0)

		if err := errors.Join(
			m.SendBack(b.ctx(), messages[0], time.Minute),
			m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 3}),
		); err != nil {
			b.Fatal(err)
		}

		if b.Delayed(group) != 1 {
			b.Error("nothing is on its way back")
		}

		b.Forget()

		wantOutOfRange(b, m, l, 3, consumer.OutOfRangeError{Queue: l.Queue, From: 3, First: 0, End: 0})

		if _, err := m.Stored(b.ctx(), l.Queue); !errors.Is(err, consumer.ErrNoCheckpoint) {
			b.Errorf("stored: %v, want ErrNoCheckpoint", err)
		}

		if b.Delayed(group) != 0 {
			b.Error("a message is still on its way back")
		}

		b.publish(1)

		if got := b.all(m, l, 0); len(got) != 1 {
			b.Errorf("%d messages, want the new one", len(got))
		}
	})
}

func TestATableOfOffsetsComesBackOlder(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(3)

		m := b.join("")
		l := b.only(m)

		if err := m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 3}); err != nil {
			b.Fatal(err)
		}

		b.RollBack(group, l.Queue, consumer.Checkpoint{Next: 1})

		if c, err := m.Stored(b.ctx(), l.Queue); err != nil || c.Next != 1 {
			b.Errorf("stored is %v, %v; want 1", c, err)
		}
	})
}

func TestACloseEndsEveryCall(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		m := b.join("")
		l := b.only(m)
		_, known := b.leases(m, 0)
		waiting := make(chan error)

		go func() {
			_, err := b.pull(m, l, 0)
			waiting <- err
		}()

		go func() {
			_, err := m.Assigned(b.ctx(), known)
			waiting <- err
		}()

		b.Close()

		for range 2 {
			if err := <-waiting; !errors.Is(err, consumer.ErrClosed) {
				b.Errorf("a call under way: %v, want ErrClosed", err)
			}
		}

		if err := b.Publish(b.ctx(), topic, nil); !errors.Is(err, consumer.ErrClosed) {
			b.Errorf("publish: %v, want ErrClosed", err)
		}
	})
}

func TestANameIsOneMember(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.join("a")

		if _, err := b.Join(b.ctx(), consumer.Subscription{
			Group: group, Topics: []string{topic}, Instance: "a",
		}); err == nil {
			b.Error("two members of one name")
		}

		b.join("b")

		if got := b.Members(group); !slices.Equal(got, []string{"a", "b"}) {
			b.Errorf("members %v", got)
		}
	})
}
