package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
)

// explainQueue says why a queue is where it is.
func explainQueue(q *admin.Why, now time.Time) []string {
	lines := []string{whereItIs(q, now)}
	add := func(what, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("  %-8s ", what)+fmt.Sprintf(format, args...))
	}

	if q.Blocking == nil && q.Stands {
		add("because", "%s%s", q.Because, since(q.Since, now))
	}

	if b := q.Blocking; b != nil {
		explainMessage(b, now, add)
	}

	for _, lane := range q.Lanes {
		explainLane(&lane, add)
	}

	if q.CommitErr != "" {
		add("commit", "fails%s: %s", since(q.CommitErrSince, now), q.CommitErr)
	}

	if q.Err != "" {
		add("error", "%s%s", q.Err, again(q.RetryAt, now))
	}

	if q.Waits != "" {
		add("pulling", "waits for %s%s", waitsFor(&q.QueueStatus), since(q.WaitsSince, now))
	}

	if q.Above > 0 {
		add("behind", "%s finished messages wait for it; they are in the checkpoint and are not done again by a restart",
			number(q.Above))
	}

	then, at := q.Then, q.ThenAt
	if q.Blocking != nil && then == "" {
		then, at = q.Blocking.Next, q.Blocking.NextAt
	}

	if !at.IsZero() {
		then = "in " + span(max(at.Sub(now), 0)) + " " + then
	}

	if then != "" {
		add("next", "%s", then)
	}

	return lines
}

// whereItIs says where a queue is, and since when.
func whereItIs(q *admin.Why, now time.Time) string {
	switch {
	case q.Paused != "":
		return fmt.Sprintf("%s  is paused: %s", q.Queue, q.Paused)
	case q.Blocking != nil:
		return fmt.Sprintf("%s  stands at %s for %s", q.Queue, number(q.Min), span(now.Sub(q.MovedAt)))
	case q.Stands:
		return fmt.Sprintf("%s  cannot go on at %s", q.Queue, number(q.Next))
	default:
		return fmt.Sprintf("%s  is at %s of %s, with nothing in flight", q.Queue, number(q.Min), number(q.End))
	}
}

// explainLane says what a lane does that a message waits for.
func explainLane(lane *actors.LaneStatus, add func(what, format string, args ...any)) {
	add("busy", "lane %d, stage %q: for %s", lane.Lane, lane.Stage, span(lane.Running))

	if len(lane.Stack) > 0 {
		add("", "  %s", strings.Join(lane.Stack[:min(len(lane.Stack), shownFrames)], " ← "))
	}
}

// shownFrames is how much of a stack is shown: the innermost frames.
const shownFrames = 4

// waitsFor says what a pull waits for, and of which limit there is no credit.
func waitsFor(q *actors.QueueStatus) string {
	if q.Limit == "" {
		return q.Waits
	}

	return q.Waits + " of " + q.Limit
}

// explainMessage says which message is in the way, and who has it.
func explainMessage(b *actors.Blocking, now time.Time, add func(what, format string, args ...any)) {
	message := b.MessageID
	if b.Key != "" {
		message += "  key " + b.Key
	}

	add("message", "%s  attempt %d of %d", message, b.Attempt, b.Attempts)

	var where []string
	if b.Channel != "" {
		where = append(where, "channel "+b.Channel)
	}

	if b.Lane >= 0 {
		where = append(where, fmt.Sprintf("lane %d", b.Lane))
	}

	if b.Stage != "" {
		where = append(where, fmt.Sprintf("stage %q", b.Stage))
	}

	doing := b.Doing + since(b.Since, now)
	if len(where) > 0 {
		doing = strings.Join(where, ", ") + ": " + doing
	}

	add("held by", "%s", doing)

	if s := b.Breaker; s != nil {
		add("paused", "since %s, as %d of %d first attempts of stage %q had failed; %d tried since",
			s.Since.UTC().Format(time.RFC3339), s.Failed, s.Seen, s.Stage, s.Tried)
	}

	if len(b.Stack) > 0 {
		add("", "  %s", strings.Join(b.Stack[:min(len(b.Stack), shownFrames)], " ← "))
	}

	if b.LastError != "" {
		add("last", "%s", b.LastError)
	}
}

// since says how long something lasts, where that is known.
func since(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}

	return " for " + span(now.Sub(t))
}

// again says when something is tried again, where that is known.
func again(t, now time.Time) string {
	if t.IsZero() {
		return ""
	}

	return "; again in " + span(max(t.Sub(now), 0))
}
