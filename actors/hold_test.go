package actors

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// waiter returns an entry with a number, of a slot.
func waiter(n int, s *slot) entry {
	b := blockOf(pipeline.Offset(n))
	b.slot = s

	return entry{since: int64(n), t: &b.tallies[0]}
}

func TestHoldLetsItsKeyGoOnInOrderAfterTheLastRetry(t *testing.T) {
	t.Parallel()

	var p parking

	s, key, other := &slot{}, orderKey{key: "a"}, orderKey{key: "b"}

	if p.follow(key, waiter(0, s)) != turnRun {
		t.Fatal("a key that nothing holds back waits")
	}

	first := waiter(1, s)
	first.hold = p.holdFor(key)
	p.add(first, 100, nil)

	sibling := waiter(2, s)
	sibling.hold = p.holdFor(key)
	p.add(sibling, 50, nil)

	for i := 3; i < 6; i++ {
		if p.follow(key, waiter(i, s)) != turnWait {
			t.Fatalf("entry %d overtakes its key", i)
		}
	}

	if p.follow(other, waiter(9, s)) != turnRun {
		t.Error("another key waits")
	}

	if due, ok := p.next(); !ok || due != 50 {
		t.Errorf("due at %d, %t", due, ok)
	}

	dst := make([]entry, 4)
	if n := p.due(99, dst); n != 1 || dst[0].since != 2 {
		t.Fatalf("%d are due: %v", n, numbers(dst[:n]))
	}

	if got := p.free(dst[0].hold); got != nil {
		t.Errorf("followers %v run before the last retry", numbers(got))
	}

	n := p.due(100, dst)
	if got := p.free(dst[0].hold); n != 1 || !slices.Equal(numbers(got), []int{3, 4, 5}) {
		t.Errorf("after %d retries the followers are %v", n, numbers(got))
	}

	if len(p.holds) != 0 || p.follow(key, waiter(7, s)) != turnRun {
		t.Error("the key is still held back")
	}
}

func TestParkingHandsOutNoMoreThanThereIsRoomFor(t *testing.T) {
	t.Parallel()

	var p parking

	s := &slot{}
	for i := range 5 {
		p.add(waiter(i, s), int64(i), nil)
	}

	dst := make([]entry, 2)
	if n := p.due(10, dst); n != 2 || !slices.Equal(numbers(dst), []int{0, 1}) {
		t.Errorf("got %v", numbers(dst[:n]))
	}

	if len(p.parked) != 3 || p.parked[0].since != 2 {
		t.Errorf("%d are left", len(p.parked))
	}
}

func TestClosedHoldGivesUpWhatComesLaterForItsQueueOnly(t *testing.T) {
	t.Parallel()

	var p parking

	closing, owned, key := &slot{}, &slot{}, orderKey{key: "a"}
	first := waiter(1, closing)
	first.hold = p.holdFor(key)
	p.add(first, 1000, nil)
	p.follow(key, waiter(2, closing))
	p.follow(key, waiter(3, owned))
	closing.become(slotClosing)

	dropped, freed := p.drop(func(e *entry, due int64) bool { return !e.t.slot().is(slotOwned) && due > 500 })
	if !slices.Equal(numbers(dropped), []int{1, 2}) || !slices.Equal(numbers(freed), []int{3}) {
		t.Fatalf("dropped %v, freed %v", numbers(dropped), numbers(freed))
	}

	if p.follow(key, waiter(4, closing)) != turnGiveUp {
		t.Error("a later message of the closing queue runs before the one that was given up")
	}

	if p.follow(key, waiter(5, owned)) != turnRun || len(p.holds) != 0 {
		t.Error("a message of another queue waits for nobody")
	}
}

func TestDropKeepsWhatIsDueInTime(t *testing.T) {
	t.Parallel()

	var p parking

	s := &slot{}
	soon, late := waiter(1, s), waiter(2, s)
	soon.hold, late.hold = p.holdFor(orderKey{key: "a"}), p.holdFor(orderKey{key: "b"})
	p.add(soon, 10, nil)
	p.add(late, 1000, nil)
	s.become(slotClosing)

	dropped, _ := p.drop(func(_ *entry, due int64) bool { return due > 500 })
	if !slices.Equal(numbers(dropped), []int{2}) || len(p.parked) != 1 || p.parked[0].since != 1 {
		t.Errorf("dropped %v, left %d", numbers(dropped), len(p.parked))
	}
}

func TestKeyOfFollowsTheOrder(t *testing.T) {
	t.Parallel()

	q := pipeline.Queue{Topic: "in", ID: 3}
	m := &pipeline.Message{Key: "k", Origin: pipeline.Origin{Queue: q}}

	if keyOf(m, pipeline.OrderByKey) != (orderKey{key: "k"}) || keyOf(m, pipeline.OrderByQueue) != (orderKey{queue: q}) {
		t.Error("the order key does not follow the order")
	}

	m.Key = ""

	if keyOf(m, pipeline.OrderByKey) != (orderKey{queue: q}) {
		t.Error("a message without a key does not keep the order of its queue")
	}
}
