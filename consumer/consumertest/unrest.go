package consumertest

import (
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Unrest draws what happens to the queues of a group, and when. It is for virtual time, and for one goroutine.
type Unrest struct {
	Rnd    *rand.Rand
	Broker *Broker
	// Group is the group, Topics are what it reads, with its retry topic where it has one.
	Group  string
	Topics []string
	// Tell is called before a queue is taken from its owner.
	Tell func(q pipeline.Queue, atOnce bool)
}

// UpTo draws a while that is longer than nothing and not longer than d.
func (u *Unrest) UpTo(d time.Duration) time.Duration {
	return 1 + time.Duration(u.Rnd.Int64N(int64(d)))
}

// Pass lets a while pass, or nothing at all.
func (u *Unrest) Pass() {
	longest := []time.Duration{0, 20 * time.Millisecond, 2 * time.Second, 15 * time.Second}

	if d := longest[u.Rnd.IntN(len(longest))]; d > 0 {
		<-time.After(u.UpTo(d))
	}
}

// Queues returns all queues that the group reads.
func (u *Unrest) Queues() []pipeline.Queue {
	var queues []pipeline.Queue

	for _, topic := range u.Topics {
		for _, s := range u.Broker.Standings(u.Group, topic) {
			queues = append(queues, s.Queue)
		}
	}

	return queues
}

// Queue draws one of the queues.
func (u *Unrest) Queue() pipeline.Queue {
	queues := u.Queues()

	return queues[u.Rnd.IntN(len(queues))]
}

// Reassign takes queues away, one or all of them, perhaps again and again; at once as [Broker.Reassign] says.
func (u *Unrest) Reassign(atOnce bool) {
	queues := u.Queues()

	if u.Rnd.IntN(2) == 0 {
		queues = []pipeline.Queue{u.Queue()}
	}

	const times = 3

	for range 1 + u.Rnd.IntN(times) {
		for _, q := range queues {
			u.Tell(q, atOnce)

			_ = u.Broker.Reassign(u.Group, q, atOnce) // nobody may own it just now
		}

		if u.Rnd.IntN(2) == 0 {
			u.Pass()
		}
	}
}

// Back draws an offset to which a queue may be sought back: one that was committed, by the group or by one broadcasting member
// of it, and not below the least. What lies above is done again then, and nothing is left out. It is false when there is none.
func (u *Unrest) Back(instance string, q pipeline.Queue, least pipeline.Offset) (to pipeline.Offset, s Standing, ok bool) {
	for _, s := range u.Broker.StandingsOf(u.Group, instance, q.Topic) {
		first := max(s.First, least)
		if s.Queue == q && s.Stored && s.Checkpoint.Next >= first {
			return first + pipeline.Offset(u.Rnd.Int64N(int64(s.Checkpoint.Next-first)+1)), s, true
		}
	}

	return 0, Standing{}, false
}
