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

// turned returns an entry with a number, which is also its place in the order of the lane.
func turned(n int, s *slot) entry {
	e := waiter(n, s)
	e.seq = int64(n)

	return e
}

func TestHoldLetsItsKeyGoOnInOrder(t *testing.T) {
	t.Parallel()

	var p parking

	s, key, other := &slot{}, orderKey{key: "a"}, orderKey{key: "b"}

	if p.follow(key, turned(1, s)) != turnRun {
		t.Fatal("a key that nothing holds back waits")
	}

	// The later message is due first, and the earlier one fails after it.
	p.hold(key, turned(3, s), 50, nil)
	p.hold(key, turned(2, s), 100, nil)

	for i := 4; i < 7; i++ {
		if p.follow(key, turned(i, s)) != turnWait {
			t.Fatalf("entry %d overtakes its key", i)
		}
	}

	if p.follow(key, turned(1, s)) != turnRun {
		t.Error("an entry waits for a later one of its key")
	}

	if p.follow(other, turned(9, s)) != turnRun {
		t.Error("another key waits")
	}

	if due, ok := p.next(); !ok || due != 100 {
		t.Errorf("due at %d, %t", due, ok)
	}

	dst := make([]entry, 4)
	if n := p.due(99, dst); n != 0 {
		t.Fatalf("%v are due before the first of their key", numbers(dst[:n]))
	}

	if n := p.due(100, dst); !slices.Equal(numbers(dst[:n]), []int{2, 3, 4, 5}) {
		t.Errorf("%v run first", numbers(dst[:n]))
	}

	if n := p.due(100, dst); !slices.Equal(numbers(dst[:n]), []int{6}) {
		t.Errorf("%v run last", numbers(dst[:n]))
	}

	if len(p.holds) != 0 || p.follow(key, turned(7, s)) != turnRun {
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

func TestHoldGivesUpWhatComesLaterForAClosingQueueOnly(t *testing.T) {
	t.Parallel()

	var p parking

	closing, owned, key := &slot{}, &slot{}, orderKey{key: "a"}
	p.hold(key, turned(2, closing), 1000, nil)
	p.follow(key, turned(3, closing))
	p.follow(key, turned(4, owned))
	closing.become(slotClosing)

	dropped := p.drop(func(e *entry, due int64) bool { return !e.t.slot().is(slotOwned) && due > 500 })
	if !slices.Equal(numbers(dropped), []int{2, 3}) {
		t.Fatalf("dropped %v", numbers(dropped))
	}

	dst := make([]entry, 4)
	if n := p.due(0, dst); !slices.Equal(numbers(dst[:n]), []int{4}) {
		t.Fatalf("%v go on", numbers(dst[:n]))
	}

	if p.follow(key, turned(1, closing)) != turnRun || p.follow(key, turned(5, owned)) != turnRun {
		t.Error("an earlier message, or one of another queue, waits for nobody")
	}

	if p.follow(key, turned(6, closing)) != turnGiveUp {
		t.Error("a later message of the closing queue runs before the one that was given up")
	}

	closing.become(slotGone)
	p.follow(key, turned(7, owned))

	if len(p.holds) != 0 {
		t.Error("a hold outlives the queue that it was for")
	}
}

func TestDropKeepsWhatIsDueInTime(t *testing.T) {
	t.Parallel()

	var p parking

	s := &slot{}
	p.hold(orderKey{key: "a"}, turned(1, s), 10, nil)
	p.hold(orderKey{key: "b"}, turned(2, s), 1000, nil)
	s.become(slotClosing)

	dropped := p.drop(func(_ *entry, due int64) bool { return due > 500 })
	if due, ok := p.next(); !slices.Equal(numbers(dropped), []int{2}) || !ok || due != 10 {
		t.Errorf("dropped %v, next is due at %d, %t", numbers(dropped), due, ok)
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
