package actors

import (
	"fmt"

	"github.com/millrace/millrace/pipeline"
)

// RewoundError is why a queue waits when the broker's stored offset is below what this job has committed before.
type RewoundError struct {
	Queue         pipeline.Queue
	Stored, Known pipeline.Offset
}

var _ error = (*RewoundError)(nil)

// Error names the queue, both offsets and the way out.
func (e *RewoundError) Error() string {
	return fmt.Sprintf("actors: %s: the broker's stored offset %d is below %d, which was committed before;"+
		" it is followed when it stays so (Options.Rewind), or seek the queue", e.Queue, e.Stored, e.Known)
}

// rewindLooks is how many answers in a row must agree, at least, before the job goes back to what they say. A guess.
const rewindLooks = 8

// checkRewind refuses a stored offset below what this job has committed until it has stayed the same long enough, unless
// somebody has set it. Where the store has no offset any more, the start position may not skip what this job has not finished
// either.
func (e *engine) checkRewind(q *owned, m *found) error {
	known, ok := e.seen[q.lease.Queue]
	if ok && !m.stored {
		m.cp.Next = min(m.cp.Next, known)
	}

	if !ok || m.cp.Next >= known || m.lease.Reset {
		q.behind = 0

		return nil
	}

	now := e.clock.now()
	if q.behind == 0 || q.low != m.cp.Next {
		q.behind, q.low = max(now, 1), m.cp.Next
		e.publish(&OffsetRewound{In: e.in(), Queue: q.lease.Queue, From: known, To: m.cp.Next})
	}

	if e.opts.Rewind == RewindWait || now-q.behind < int64(e.opts.RewindPatience) {
		return &RewoundError{Queue: q.lease.Queue, Stored: m.cp.Next, Known: known}
	}

	e.publish(&OffsetRewound{In: e.in(), Queue: q.lease.Queue, From: known, To: m.cp.Next, Followed: true})

	return nil
}
