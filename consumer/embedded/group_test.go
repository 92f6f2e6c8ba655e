package embedded

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestInstanceIsAMemberOnce(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 2)

	for _, broadcast := range []bool{false, true} {
		s := consumer.Subscription{Group: "g", Topics: []string{"t"}, Instance: "one", Broadcast: broadcast}
		m := w.subscribe(s)

		if _, err := w.Join(t.Context(), s); !errors.Is(err, ErrTwice) {
			t.Errorf("the same instance again: %v, want ErrTwice", err)
		}

		m.leave()
		w.subscribe(s).leave()
	}

	for _, s := range []consumer.Subscription{
		{Topics: []string{"t"}},
		{Group: "g"},
		{Group: "a/b", Topics: []string{"t"}},
		{Group: "g", Topics: []string{"t"}, Broadcast: true},
		{Group: "g", Topics: []string{"t"}, Instance: "a b"},
	} {
		if _, err := w.Join(t.Context(), s); err == nil {
			t.Errorf("joined with %+v", s)
		}
	}
}

// TestEpochIsNeverUsedAgain compares the epochs of leases over the rebalancing and the restarts of a broker.
func TestEpochIsNeverUsedAgain(t *testing.T) {
	t.Parallel()

	o := Options{Dir: t.TempDir()}
	w := openWorld(t, o)
	w.topic("t", 2)

	seen := make(map[uint64]bool)
	epochs := make(map[pipeline.Queue]uint64)

	var last consumer.Lease

	for range 3 {
		for range 3 {
			m := w.join("g", "t")

			for _, l := range m.await("t", 2) {
				if seen[l.Epoch] || l.Epoch < epochs[l.Queue] {
					t.Errorf("epoch %d of %s after %d", l.Epoch, l.Queue, epochs[l.Queue])
				}

				seen[l.Epoch] = true
				epochs[l.Queue] = l.Epoch
				last = l
			}

			if err := m.Release(t.Context(), last); err != nil { // and it comes back, as another lease
				t.Fatal(err)
			}

			m.await("t", 2)
			m.leave()
		}

		w.reopen(o)
	}

	m := w.join("g", "t")
	m.await("t", 2)

	if err := m.Commit(t.Context(), last, consumer.Checkpoint{}); !errors.Is(err, consumer.ErrNotOwner) {
		t.Errorf("committed under a lease of an earlier process: %v, want ErrNotOwner", err)
	}
}

// TestQueueTakenAwayIsFenced lets a member ignore that a queue was taken away: it can finish until the broker loses
// patience, and nothing after that.
func TestQueueTakenAwayIsFenced(t *testing.T) {
	t.Parallel()

	const patience = 100 * time.Millisecond

	w := openWorld(t, Options{Dir: t.TempDir(), Patience: patience})
	w.topic("t", 2)
	w.publishN("t", 4)

	slow := w.subscribe(consumer.Subscription{Group: "g", Topics: []string{"t"}, Instance: "a"})
	both := slow.await("t", 2)
	message := slow.pull(both[1], 0, 1).Messages[0]
	waiting := make(chan error)

	go func() {
		_, err := slow.Pull(t.Context(), both[1], 2, consumer.Limit{Messages: 1, Bytes: 1})
		waiting <- err
	}()

	start := time.Now()
	next := w.subscribe(consumer.Subscription{Group: "g", Topics: []string{"t"}, Instance: "b"})

	if kept := slow.one("t"); kept != both[0] {
		t.Fatalf("kept %v of %v", kept, both)
	}

	if err := <-waiting; !errors.Is(err, consumer.ErrNotOwner) {
		t.Errorf("the waiting pull: %v, want ErrNotOwner", err)
	}

	gone := both[1]
	slow.commit(gone, consumer.Checkpoint{Next: 1}) // its work may end

	got := next.one("t")
	if took := time.Since(start); got.Queue != gone.Queue || got.Epoch <= gone.Epoch || took < patience {
		t.Errorf("after %v the next owner has %v, was %v", took, got, gone)
	}

	for name, call := range map[string]func() error{
		"Commit":     func() error { return slow.Commit(t.Context(), gone, consumer.Checkpoint{Next: 2}) },
		"Release":    func() error { return slow.Release(t.Context(), gone) },
		"SendBack":   func() error { return slow.SendBack(t.Context(), message, 0) },
		"DeadLetter": func() error { return slow.DeadLetter(t.Context(), message, consumer.Cause{}) },
		"Pull": func() error {
			_, err := slow.Pull(t.Context(), gone, 0, consumer.Limit{Messages: 1, Bytes: 1})

			return err
		},
	} {
		if err := call(); !errors.Is(err, consumer.ErrNotOwner) {
			t.Errorf("%s after the lease: %v, want ErrNotOwner", name, err)
		}
	}

	if c, err := next.Stored(t.Context(), got.Queue); err != nil || c.Next != 1 {
		t.Errorf("the next owner finds %v, %v, want 1", c, err)
	}
}

// TestQueueGivenBackInOneStep takes a queue away and gives it back before its owner has noticed.
func TestQueueGivenBackInOneStep(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 2)

	m := w.subscribe(consumer.Subscription{Group: "g", Topics: []string{"t"}, Instance: "a"})
	before := m.await("t", 2)
	w.subscribe(consumer.Subscription{Group: "g", Topics: []string{"t"}, Instance: "b"}).leave()

	m.one("t") // the second is on its way

	if err := m.Release(t.Context(), before[1]); err != nil {
		t.Fatal(err)
	}

	if after := m.await("t", 2); after[0] != before[0] || after[1].Queue != before[1].Queue || after[1].Epoch <= before[1].Epoch {
		t.Errorf("got %v back, was %v", after, before)
	}
}

func TestCommitIsChecked(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.publishN("t", 3)

	m := w.join("g", "t")
	l := m.one("t")
	m.commit(l, consumer.Checkpoint{Next: 3})
	m.commit(l, consumer.Checkpoint{Next: 1}) // a seek

	for _, c := range []consumer.Checkpoint{{Next: 4}, {Next: -1}, {Next: 1, Done: []consumer.Run{{From: 1, To: 2}}}} {
		if err := m.Commit(t.Context(), l, c); err == nil {
			t.Errorf("%v was committed", c)
		}
	}

	if c, err := m.Stored(t.Context(), l.Queue); err != nil || c.Next != 1 {
		t.Errorf("stored %v, %v", c, err)
	}

	if _, err := m.Stored(t.Context(), pipeline.Queue{Topic: "u"}); err == nil || errors.Is(err, consumer.ErrNoCheckpoint) {
		t.Errorf("stored of a queue that does not exist: %v", err)
	}
}

// TestDamagedCheckpointIsUnknown damages a checkpoint: it is neither taken for another one nor for none.
func TestDamagedCheckpointIsUnknown(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	w.publishN("t", 3)

	m := w.join("g", "t")
	l := m.one("t")
	m.commit(l, consumer.Checkpoint{Next: 1, Done: []consumer.Run{{From: 2, To: 3}}})

	key := checkpointKey(w.groups["g"].id, w.topics["t"].queues[0].id)

	var value []byte
	if _, err := w.store.get(key, func(v []byte) error { value = append(value, v...); return nil }); err != nil {
		t.Fatal(err)
	}

	for bit := range 8 * len(value) {
		flipped := append([]byte(nil), value...)
		flipped[bit/8] ^= 1 << (bit % 8)

		if err := w.store.db.Set(key, flipped, nil); err != nil {
			t.Fatal(err)
		}

		if c, err := m.Stored(t.Context(), l.Queue); !errors.Is(err, ErrDamaged) {
			t.Fatalf("bit %d: %v, %v", bit, c, err)
		}
	}

	m.commit(l, consumer.Checkpoint{Next: 2}) // the way out

	if c, err := m.Stored(t.Context(), l.Queue); err != nil || c.Next != 2 {
		t.Errorf("stored %v, %v", c, err)
	}
}
