package actors

import (
	"cmp"
	"slices"
	"time"
)

// away counts the messages that a job has sent back and that are not due yet, by the next full second. So it is bounded
// by the longest delay, not by the messages.
type away struct {
	due []dueIn // sorted
}

type dueIn struct{ second, n int64 }

// add counts a message that comes back after a delay; now is a reading of the clock.
func (a *away) add(now int64, delay time.Duration) {
	a.forget(now)

	second := (now + int64(delay+time.Second-1)) / int64(time.Second)

	i, found := slices.BinarySearchFunc(a.due, second, func(d dueIn, s int64) int { return cmp.Compare(d.second, s) })
	if !found {
		a.due = slices.Insert(a.due, i, dueIn{second: second})
	}

	a.due[i].n++
}

// look returns how many have not come back, and when by the clock the first of them does, to the second.
func (a *away) look(now int64) (n, first int64) {
	a.forget(now)

	for _, d := range a.due {
		n += d.n
	}

	if n > 0 {
		first = a.due[0].second * int64(time.Second)
	}

	return n, first
}

// forget drops what is due.
func (a *away) forget(now int64) {
	i := slices.IndexFunc(a.due, func(d dueIn) bool { return d.second*int64(time.Second) > now })
	if i < 0 {
		i = len(a.due)
	}

	a.due = slices.Delete(a.due, 0, i)
}
