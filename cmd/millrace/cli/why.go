package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
)

// explainQueue says why a queue stands where it does.
func explainQueue(q *actors.QueueStatus, now time.Time) []string {
	lines := []string{whereItStands(q, now)}
	add := func(what, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("  %-8s ", what)+fmt.Sprintf(format, args...))
	}

	if q.Blocking == nil && q.Err == "" && q.CommitErr == "" && q.Paused == "" {
		lines[0] = fmt.Sprintf("%s  is at %s of %s, with nothing in flight", q.Queue, number(q.Min), number(q.End))
	}

	if b := q.Blocking; b != nil {
		explainMessage(b, now, add)
	}

	if q.CommitErr != "" {
		add("commit", "fails%s: %s", since(q.CommitErrSince, now), q.CommitErr)
	}

	if q.Err != "" {
		add("error", "%s%s", q.Err, again(q.RetryAt, now))
	}

	if q.Waits != "" {
		add("pulling", "waits for %s%s", waitsFor(q), since(q.WaitsSince, now))
	}

	if q.Above > 0 {
		add("behind", "%s finished messages wait for it; they are in the checkpoint and are not done again by a restart",
			number(q.Above))
	}

	if b := q.Blocking; b != nil && b.Next != "" {
		next := b.Next
		if !b.NextAt.IsZero() {
			next = "in " + span(max(b.NextAt.Sub(now), 0)) + " " + next
		}

		add("next", "%s", next)
	}

	return lines
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
