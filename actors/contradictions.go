package actors

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Contradiction is something in a snapshot that must not be.
type Contradiction struct {
	// Rule is the number of docs/guarantees.md, or "books" for counts that do not fit.
	Rule  string
	Queue pipeline.Queue
	Text  string
}

// Contradictions returns what in a snapshot of a job breaks a rule: limits that are passed, offsets out of order, and what
// stands and cannot say why, or for how long. It is for tests, which ask in a moment when nothing moves; beside a job at work a
// snapshot may be a little ahead of itself.
func (s *Snapshot) Contradictions(plan *pipeline.Plan, limits consumer.Limits) []Contradiction {
	var all []Contradiction

	add := func(rule string, q *QueueStatus, format string, args ...any) {
		k := Contradiction{Rule: rule, Text: fmt.Sprintf(format, args...)}
		if q != nil {
			k.Queue = q.Queue
		}

		all = append(all, k)
	}

	if s.Counts.Broken != 0 {
		add("books", nil, "Counts.Broken is %d", s.Counts.Broken)
	}

	limits = limits.OrDefaults()
	late := lateness(plan)

	for i := range s.Queues {
		q := &s.Queues[i]
		b := q.Blocking

		if q.InFlight > limits.Messages || q.InFlight > 1 && q.Bytes > limits.Bytes || int64(q.InFlight) > limits.Span {
			add("I9", q, "it holds %d messages, %d bytes, above %d; limits %+v", q.InFlight, q.Bytes, q.Above, limits)
		}

		if q.Committed > q.Min || q.Min > q.Next || q.Next > q.End {
			add("I9", q, "its offsets are out of order: %+v", *q)
		}

		switch {
		case q.InFlight > 0 && b == nil:
			add("I12", q, "it has %d in flight, and nothing to say of the message at %d", q.InFlight, q.Min)
		case b != nil && (b.Doing == "" || b.Next == ""):
			add("I12", q, "it stands at %d and does not say why: %+v", q.Min, *b)
		case b != nil && !b.NextAt.IsZero() && s.At.Sub(b.NextAt) > late:
			add("I12", q, "what it waits for at %d is overdue by %s: %+v", q.Min, s.At.Sub(b.NextAt), *b)
		case b == nil && q.Lag() > 0 && q.Waits == "" && q.AskedAt.IsZero():
			add("I12", q, "it lags by %d, and does not say why: %+v", q.Lag(), *q)
		}
	}

	return all
}

// lateness is by how much a deadline may be missed: it is seen by the first look after it, and acted upon by the next one.
func lateness(plan *pipeline.Plan) time.Duration {
	const (
		looks = 3
		turn  = 10 * time.Millisecond
	)

	shortest := maxLook * looksPerTimeout
	for i := range plan.Job.Channels {
		shortest = min(shortest, plan.Job.Channels[i].Timeout)
	}

	return looks*max(shortest/looksPerTimeout, minLook) + turn
}
