package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
)

// standsAfter is how long a commit watermark may rest on a message before it is called standing.
const standsAfter = 5 * time.Second

// progressLines describes a job: a line for the job, one for what it waits for as a whole, and with detail one for each channel
// and for each queue that stands.
// Rates are those since before, or over all of took where that is nil; with a took of 0 there are none.
func progressLines(s, before *actors.Snapshot, took time.Duration, detail bool) []string {
	var (
		inFlight int
		lag      int64
	)

	for i := range s.Queues {
		inFlight += s.Queues[i].InFlight
		lag += int64(s.Queues[i].End - s.Queues[i].Min)
	}

	lasted, doneBefore, inBefore := took, int64(0), int64(0)
	if before != nil {
		lasted, doneBefore, inBefore = s.At.Sub(before.At), done(before), before.Counts.Admitted
	}

	line := fmt.Sprintf("%s  %s %s   in %s   done %s (%s)   in flight %s   lag %s", s.Job, s.State, clockTime(took),
		rate(s.Counts.Admitted-inBefore, lasted), number(done(s)), rate(done(s)-doneBefore, lasted), number(inFlight),
		number(lag))
	if took == 0 {
		line = fmt.Sprintf("%s  %s   in %s   done %s   in flight %s   lag %s",
			s.Job, s.State, number(s.Counts.Admitted), number(done(s)), number(inFlight), number(lag))
	}

	if perSecond := float64(done(s)-doneBefore) / max(lasted.Seconds(), 1e-3); lag > 0 && perSecond > 0 && lasted > 0 {
		line += " (~" + clockTime(time.Duration(float64(lag)/perSecond*float64(time.Second))) + ")"
	}

	parts := []string{line}

	for _, c := range []struct {
		what string
		n    int64
	}{
		{"sent back", s.Counts.SentBack},
		{"to come again", s.Away},
		{"dead", s.Counts.DeadLettered},
		{"dropped", s.Counts.Dropped},
		{"hung", int64(s.Hung)},
	} {
		if c.n > 0 {
			parts = append(parts, c.what+" "+number(c.n))
		}
	}

	lines := []string{strings.Join(parts, "   ")}
	if s.Waits != "" {
		lines = append(lines, fmt.Sprintf("  waits %s for %s", span(max(s.At.Sub(s.WaitsSince), 0)), s.Waits))
	}

	if !detail {
		return lines
	}

	lines = append(lines, channelLines(s, before, lasted)...)

	for i := range s.Queues {
		if q := &s.Queues[i]; stands(q, s.At) {
			lines = append(lines, fmt.Sprintf("  %s – `millrace why %s`", whereItStands(q, s.At), q.Queue))
		}
	}

	return lines
}

// done is how many messages have found their end.
func done(s *actors.Snapshot) int64 {
	return s.Counts.Completed + s.Counts.Filtered + s.Counts.DeadLettered + s.Counts.SentBack + s.Counts.Dropped
}

func channelLines(s, before *actors.Snapshot, since time.Duration) []string {
	if len(s.Channels) == 0 {
		return nil // it has not started
	}

	rows := make([][]string, len(s.Channels))

	for i := range s.Channels {
		c := &s.Channels[i]
		taken := c.Counts.Taken

		if before != nil && i < len(before.Channels) {
			taken -= before.Channels[i].Counts.Taken
		}

		speed := rate(taken, since)
		if since == 0 {
			speed = "taken " + number(taken)
		}

		rows[i] = []string{"  " + c.Name, plural(len(c.Lanes), "lane"), speed, strings.Join(channelNotes(c), "  ")}
	}

	return strings.Split(strings.TrimRight(table(rows), "\n"), "\n")
}

// channelNotes says what is not nothing in a channel.
func channelNotes(c *actors.ChannelStatus) []string {
	batch := 0
	for _, lane := range c.Lanes {
		batch += lane.Batch
	}

	var notes []string

	for _, n := range []struct {
		what string
		n    int64
	}{
		{"waiting", int64(c.Waiting)},
		{"batch", int64(batch)},
		{"written", c.Counts.Written},
		{"filtered", c.Counts.Filtered},
		{failedTitle, c.Counts.Failed},
		{"retried", c.Counts.Retried},
		{"panics", c.Counts.Panics},
		{"past deadline", c.Counts.Timeouts},
	} {
		if n.n > 0 {
			notes = append(notes, n.what+" "+number(n.n))
		}
	}

	return notes
}

// stands reports whether a queue does not move although there is something to do.
func stands(q *actors.QueueStatus, now time.Time) bool {
	switch {
	case q.Paused != "" || q.Err != "" || q.CommitErr != "" && q.Committed < q.Min:
		return true
	case q.Blocking == nil:
		return false
	default:
		return now.Sub(q.MovedAt) >= standsAfter
	}
}

// whereItStands says where a queue stands.
func whereItStands(q *actors.QueueStatus, now time.Time) string {
	switch {
	case q.Paused != "":
		return fmt.Sprintf("%s  is paused: %s", q.Queue, q.Paused)
	case q.Blocking == nil:
		return fmt.Sprintf("%s  cannot go on at %s", q.Queue, number(q.Next))
	default:
		return fmt.Sprintf("%s  stands at %s for %s", q.Queue, number(q.Min), span(now.Sub(q.MovedAt)))
	}
}
