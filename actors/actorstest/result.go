package actorstest

import "time"

// Result is what has become of everything in a run that has broken no rule.
type Result struct {
	// Seed is that of the run, Lasted how long it took in virtual time.
	Seed   uint64
	Lasted time.Duration
	// Ends are the ends of the messages, in the order in which they were published.
	Ends []End
	// Starts, Kills and Failures count processes that were started and killed, and failures of stages, gathers and sinks.
	Starts, Kills, Failures int
}

// End is what has become of one message.
type End struct {
	// ID is the message's.
	ID string
	// Dead: it was parked in the dead letters. Dropped: a broadcasting job has dropped it. Otherwise it was completed. The
	// failures of a plan leave a message an attempt, so that a message is dead by what the job itself does.
	Dead, Dropped bool
	// Writes is how often a sink has taken a part of it. A completed message with none was filtered.
	Writes int
	// Deliveries is how often it was delivered by the broker, for the failures that were not retried in place.
	Deliveries int
}

// result sums a run up. The caller holds mu.
func (c *course) result() *Result {
	r := &Result{Seed: c.seed, Lasted: c.lasted, Starts: c.starts, Kills: c.kills}

	for _, n := range c.failures {
		r.Failures += n
	}

	for _, id := range c.published {
		f := c.fates[id]
		r.Ends = append(r.Ends, End{
			ID: id, Dead: f.Dead > 0, Dropped: c.dropped[id], Writes: c.book.writes[id], Deliveries: f.Delivered,
		})
	}

	return r
}
