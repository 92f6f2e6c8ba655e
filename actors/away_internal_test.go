package actors

import (
	"testing"
	"time"
)

func TestAwayCountsUntilDue(t *testing.T) {
	t.Parallel()

	var a away

	at := func(seconds float64) int64 { return int64(seconds * float64(time.Second)) }

	a.add(at(1.5), 10*time.Second)
	a.add(at(1.7), 2*time.Second)
	a.add(at(1.9), 10*time.Second)

	for _, c := range []struct{ now, n, first int64 }{
		{at(2), 3, at(4)},
		{at(4), 2, at(12)},
		{at(11.9), 2, at(12)},
		{at(12), 0, 0},
	} {
		if n, first := a.look(c.now); n != c.n || first != c.first {
			t.Errorf("at %v %d are away, the first until %v; want %d, %v",
				time.Duration(c.now), n, time.Duration(first), c.n, time.Duration(c.first))
		}
	}

	for i := range int64(100_000) {
		a.add(i*int64(time.Millisecond), time.Minute)
	}

	if len(a.due) > 61 {
		t.Errorf("a hundred seconds of messages that come back after one minute take %d places", len(a.due))
	}
}
