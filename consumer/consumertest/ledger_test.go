package consumertest_test

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
)

func TestCommitsAreSeenBeforeTheyTakeEffect(t *testing.T) {
	t.Parallel()

	var seen []consumertest.Commit

	cfg := consumertest.Config{OnCommit: func(c consumertest.Commit) { seen = append(seen, c) }}

	inBubble(t, cfg, 1, func(b *bundle) {
		b.publish(6)

		m := b.join("me")
		l := b.only(m)
		messages := b.all(m, l, 0)

		if err := m.SendBack(b.ctx(), messages[1], 0); err != nil {
			b.Fatal(err)
		}

		one := consumer.Checkpoint{Next: 2, Done: []consumer.Run{{From: 4, To: 5}}}
		two := consumer.Checkpoint{Next: 5}
		foreign := consumer.Lease{Queue: l.Queue, Epoch: l.Epoch + 1}

		if err := errors.Join(m.Commit(b.ctx(), l, one), m.Commit(b.ctx(), l, two)); err != nil {
			b.Fatal(err)
		}

		if err := m.Commit(b.ctx(), foreign, consumer.Checkpoint{Next: 6}); !errors.Is(err, consumer.ErrNotOwner) {
			b.Errorf("commit under a foreign lease: %v", err)
		}

		if err := m.Commit(b.ctx(), l, consumer.Checkpoint{Next: -1}); !errors.Is(err, consumer.ErrBadCheckpoint) {
			b.Errorf("commit of nonsense: %v", err)
		}

		if len(seen) != 4 {
			b.Fatalf("%d commits seen, want 4", len(seen))
		}

		first, second, refused := seen[0], seen[1], seen[2]

		if first.Group != group || first.Instance != "me" || first.Lease != l || first.Stored || first.Err != nil ||
			first.Checkpoint.Next != 2 || !slices.Equal(first.Checkpoint.Done, one.Done) {
			b.Errorf("first commit %+v", first)
		}

		if second.Before.Next != 2 || !slices.Equal(second.Before.Done, one.Done) || !second.Stored {
			b.Errorf("second commit %+v", second)
		}

		if refused.Lease != foreign || !errors.Is(refused.Err, consumer.ErrNotOwner) {
			b.Errorf("refused commit %+v", refused)
		}

		covers := func(c consumertest.Commit) (ids []string) {
			for _, r := range c.Covers {
				if r.Returned != (r.ID == "1") || r.Queue != l.Queue || r.Delivery != 1 {
					b.Errorf("record %+v", r)
				}

				ids = append(ids, r.ID)
			}

			return ids
		}

		if got := covers(first); !slices.Equal(got, []string{"0", "1", "4"}) {
			b.Errorf("the first commit covers %v", got)
		}

		if got := covers(second); !slices.Equal(got, []string{"2", "3"}) {
			b.Errorf("the second commit covers %v", got)
		}
	})
}

func TestTheLedgerTellsEveryCall(t *testing.T) {
	t.Parallel()

	inBubble(t, consumertest.Config{}, 1, func(b *bundle) {
		b.publish(2)

		m := b.join("me")
		l := b.only(m)
		messages := b.all(m, l, 0)
		cause := consumer.Cause{Stage: "a/b", Error: "broke"}

		for range 2 {
			if err := errors.Join(
				m.SendBack(b.ctx(), messages[0], 5),
				m.DeadLetter(b.ctx(), messages[1], cause),
			); err != nil {
				b.Fatal(err)
			}
		}

		b.SetFaults(consumertest.Faults{Lose: always(consumertest.OpCommit)})

		if err := m.Commit(b.ctx(), l, consumer.Checkpoint{Next: 2}); !errors.Is(err, consumertest.ErrInjected) {
			b.Fatal(err)
		}

		var delivered []string

		for _, call := range b.Calls(consumertest.OpDeliver) {
			if call.Instance != "me" || call.Queue != l.Queue || call.Epoch != l.Epoch || call.Delivery != 1 {
				b.Errorf("delivery %+v", call)
			}

			delivered = append(delivered, call.ID)
		}

		if !slices.Equal(delivered, []string{"0", "1"}) {
			b.Errorf("delivered %v", delivered)
		}

		backs := b.Calls(consumertest.OpSendBack)
		if len(backs) != 2 || backs[0].ID != "0" || backs[0].Delay != 5 || backs[0].Repeated || !backs[1].Repeated {
			b.Errorf("sent back %+v", backs)
		}

		dead := b.Calls(consumertest.OpDeadLetter)
		if len(dead) != 2 || dead[0].ID != "1" || !reflect.DeepEqual(dead[0].Cause, cause) || dead[0].Repeated || !dead[1].Repeated {
			b.Errorf("dead-lettered %+v", dead)
		}

		commits := b.Calls(consumertest.OpCommit)
		if len(commits) != 1 || !commits[0].Applied || commits[0].Err == nil || commits[0].Checkpoint.Next != 2 {
			b.Errorf("committed %+v", commits)
		}

		all := b.Calls()
		if want := 2 + 1 + 1 + 1 + 2 + 4 + 1; len(all) != want { // published, joined, assigned, pulled, and the above
			b.Errorf("%d calls, want %d: %+v", len(all), want, all)
		}

		if !slices.IsSortedFunc(all, func(a, b consumertest.Call) int { return a.At.Compare(b.At) }) {
			b.Error("the calls are not in the order of their times")
		}

		standing := b.Standings(group, topic)[0]
		if standing.Checkpoint.Next != 2 || !standing.Stored || standing.End != 2 ||
			!slices.Equal(standing.Returned, []consumer.Run{{From: 0, To: 2}}) {
			b.Errorf("standing %+v", standing)
		}
	})
}
