package actors

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// numbered returns entries that are told apart by their number, from `from` to before `to`.
func numbered(from, to int) []entry {
	entries := make([]entry, 0, to-from)
	for i := from; i < to; i++ {
		entries = append(entries, entry{since: int64(i), m: &pipeline.Message{}})
	}

	return entries
}

// numbers returns what tells entries apart.
func numbers(entries []entry) []int {
	ns := make([]int, len(entries))
	for i, e := range entries {
		ns[i] = int(e.since)
	}

	return ns
}

// content returns what waits in an inbox, oldest first.
func content(b *inbox) []int {
	var ns []int

	b.each(func(e *entry) bool {
		ns = append(ns, int(e.since))

		return true
	})

	return ns
}

// span returns the numbers from `from` to before `to`.
func span(from, to int) []int {
	var ns []int
	for i := from; i < to; i++ {
		ns = append(ns, i)
	}

	return ns
}

func TestInboxKeepsOrderRoundTheEndOfItsRing(t *testing.T) {
	t.Parallel()

	b := newInbox(1)
	l := &lane{}
	dst := make([]entry, 48)
	next, taken := 0, 0

	for range 20 {
		b.push(numbered(next, next+40))
		next += 40

		n, _ := b.take(l, dst)
		if want := span(taken, taken+n); !slices.Equal(numbers(dst[:n]), want) {
			t.Fatalf("took %v, want %v", numbers(dst[:n]), want)
		}

		taken += n
	}

	if len(b.ring) != inboxMin || taken != next {
		t.Errorf("the ring has grown to %d; %d of %d taken", len(b.ring), taken, next)
	}

	b.push(numbered(next, next+1000))

	if want := span(taken, next+1000); !slices.Equal(content(b), want) {
		t.Error("growing has mixed up the order")
	}
}

func TestInboxHoldsOnToNoMessageThatWasTaken(t *testing.T) {
	t.Parallel()

	b := newInbox(1)
	b.push(numbered(0, 50))
	b.take(&lane{}, make([]entry, 30))
	b.push(numbered(50, 80))
	b.take(&lane{}, make([]entry, 100))
	b.push(numbered(80, 90))
	b.remove(func(e *entry) bool { return e.since%2 == 0 })

	held := 0

	for _, e := range b.ring {
		if e.m != nil {
			held++
		}
	}

	if held != b.size() || held != 5 {
		t.Errorf("the ring holds %d messages, %d wait", held, b.size())
	}
}

func TestInboxSharesWhatWaitsAmongItsLanes(t *testing.T) {
	t.Parallel()

	b := newInbox(4)
	b.push(numbered(0, 10))

	var got []int

	dst := make([]entry, 100)
	for b.size() > 0 {
		n, _ := b.take(&lane{}, dst)
		got = append(got, n)
	}

	if want := []int{3, 2, 2, 1, 1, 1}; !slices.Equal(got, want) {
		t.Errorf("the shares are %v, want %v", got, want)
	}
}

func TestInboxWakesOneIdleLaneAtATime(t *testing.T) {
	t.Parallel()

	b := newInbox(3)
	first, second, third := &lane{num: 1}, &lane{num: 2}, &lane{num: 3}
	dst := make([]entry, 1)

	for _, l := range []*lane{first, second, third, third} {
		if n, other := b.take(l, dst); n != 0 || other != nil {
			t.Fatalf("an empty inbox gave %d and wakes %v", n, other)
		}
	}

	b.drop(third)

	woken := b.push(numbered(0, 3))
	if woken != second {
		t.Fatalf("lane %v is woken, want the one that became idle last", woken)
	}

	if n, other := b.take(woken, dst); n != 1 || other != first {
		t.Errorf("took %d; %v is woken for the rest, want the first lane", n, other)
	}

	if n, other := b.take(first, dst); n != 1 || other != nil {
		t.Errorf("took %d; %v is woken though nobody is idle", n, other)
	}

	if n, _ := b.take(second, dst); n != 1 || len(b.idle) != 0 {
		t.Errorf("took %d; %d are listed as idle", n, len(b.idle))
	}

	// Who finds work by himself while he is listed is no longer woken.
	b.take(second, dst)
	b.unread(numbered(7, 8))
	b.idle = append(b.idle, first)
	first.idle = true
	b.take(first, dst)

	if first.idle || slices.Contains(b.idle, first) {
		t.Error("a lane that has work is listed as idle")
	}
}

func TestInboxUnreadPutsBackInFrontInOrder(t *testing.T) {
	t.Parallel()

	b := newInbox(1)
	l := &lane{}
	dst := make([]entry, 60)

	b.push(numbered(0, 60))
	n, _ := b.take(l, dst)
	b.push(numbered(60, 120))
	b.unread(dst[20:n])

	if want := span(20, 120); !slices.Equal(content(b), want) {
		t.Errorf("waiting %v, want %v", content(b), want)
	}
}

func TestInboxRemoveKeepsTheOrderOfTheRest(t *testing.T) {
	t.Parallel()

	b := newInbox(1)
	b.push(numbered(0, 60))
	b.take(&lane{}, make([]entry, 50))
	b.push(numbered(60, 100))

	out := b.remove(func(e *entry) bool { return e.since%3 == 0 })

	var want, rest []int

	for i := 50; i < 100; i++ {
		if i%3 == 0 {
			want = append(want, i)
		} else {
			rest = append(rest, i)
		}
	}

	if !slices.Equal(numbers(out), want) || !slices.Equal(content(b), rest) {
		t.Errorf("removed %v, left %v", numbers(out), content(b))
	}
}

// FuzzInbox holds the ring against a plain slice.
func FuzzInbox(f *testing.F) {
	f.Add([]byte{0, 10, 1, 5, 2, 3, 3, 2, 0, 200, 1, 255})
	f.Add([]byte{0, 63, 1, 63, 0, 63, 2, 9, 0, 255, 0, 255, 3, 7, 1, 1})

	f.Fuzz(func(t *testing.T, ops []byte) {
		b := newInbox(1)
		l := &lane{}

		var model []int

		next := 0

		for len(ops) >= 2 {
			op, n := ops[0]%4, int(ops[1])
			ops = ops[2:]

			switch op {
			case 0:
				b.push(numbered(next, next+n))
				model = append(model, span(next, next+n)...)
				next += n
			case 1:
				dst := make([]entry, n)
				k, _ := b.take(l, dst)

				if k != min(n, len(model)) || !slices.Equal(numbers(dst[:k]), model[:k]) {
					t.Fatalf("took %v, want %d of %v", numbers(dst[:k]), n, model)
				}

				model = model[k:]
			case 2:
				b.unread(numbered(next, next+n))
				model = append(span(next, next+n), model...)
				next += n
			case 3:
				pick := func(i int) bool { return i%(n+1) == 0 }
				b.remove(func(e *entry) bool { return pick(int(e.since)) })
				model = slices.DeleteFunc(model, pick)
			}

			if !slices.Equal(content(b), model) || b.size() != len(model) {
				t.Fatalf("after operation %d with %d: %v, want %v", op, n, content(b), model)
			}
		}
	})
}
