package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
)

// statusLines describes a job: a line for the whole, and tables of its queues, channels and lanes. Rates are those since before,
// a snapshot of the same job; nil means that there are none.
func statusLines(s, before *actors.Snapshot) []string {
	lines := progressLines(s, nil, 0, false)

	if took := sinceThen(s, before); took > 0 {
		lines[0] += "   now " + rate(s.Counts.Admitted-before.Counts.Admitted, took) + " in, " +
			rate(done(s)-done(before), took) + " done"
	}

	for _, rows := range [][][]string{queueRows(s), channelRows(s, before), laneRows(s)} {
		if len(rows) > 1 {
			lines = append(lines, strings.Split(strings.TrimRight(numberTable(rows), "\n"), "\n")...)
		}
	}

	return lines
}

// sinceThen is how much later a snapshot is than one before it of the same run; 0 when there is none.
func sinceThen(s, before *actors.Snapshot) time.Duration {
	if before == nil || before.Counts.Admitted > s.Counts.Admitted {
		return 0
	}

	return s.At.Sub(before.At)
}

// failedTitle is above counts of failures.
const failedTitle = "failed"

func queueRows(s *actors.Snapshot) [][]string {
	rows := [][]string{{"  queue", "committed", "next", "end", "lag", "in flight", "above", ""}}
	why := admin.Explain(s)

	for i := range why.Queues {
		q := &why.Queues[i]

		state := string(q.Cause)
		if q.Stands {
			state = "stands" + since(q.Since, s.At) + ": " + state
		}

		rows = append(rows, []string{
			"  " + q.Queue.String(), number(q.Committed), number(q.Next), number(q.End), number(q.Lag()), number(q.InFlight),
			number(q.Above), state,
		})
	}

	return rows
}

func channelRows(s, before *actors.Snapshot) [][]string {
	rows := [][]string{{
		"  channel", "lanes", "waiting", "taken", "filtered", "written", failedTitle, "retried", "past deadline", "", "",
	}}
	took := sinceThen(s, before)

	for i := range s.Channels {
		c := &s.Channels[i]

		speed := ""
		if took > 0 && i < len(before.Channels) {
			speed = rate(c.Counts.Taken-before.Channels[i].Counts.Taken, took)
		}

		rows = append(rows, []string{
			"  " + c.Name, number(len(c.Lanes)), number(c.Waiting), number(c.Counts.Taken), number(c.Counts.Filtered),
			number(c.Counts.Written), number(c.Counts.Failed), number(c.Counts.Retried), number(c.Counts.Timeouts), speed,
			pauseText(c.Breaker, s.At),
		})
	}

	return rows
}

// pauseText says why a channel pauses, and when it tries again; nothing where it does not.
func pauseText(b *actors.BreakerStatus, now time.Time) string {
	if b == nil {
		return ""
	}

	then := "tries one message now"
	if !b.NextAt.IsZero() {
		then = "tries one in " + span(max(b.NextAt.Sub(now), 0).Round(time.Second))
	}

	why, _, _ := strings.Cut(harmless(b.LastError), "\n")

	return fmt.Sprintf("pauses%s: breaker open at %s, %s: %s", since(b.Since, now), b.Stage, then, why)
}

func laneRows(s *actors.Snapshot) [][]string {
	rows := [][]string{{"  lane", "taken", "written", failedTitle, "in batch", "to retry", ""}}

	for i := range s.Channels {
		for _, lane := range s.Channels[i].Lanes {
			doing := "idle"
			if lane.Stage != "" {
				doing = "in " + lane.Stage + " for " + span(lane.Running)
			}

			rows = append(rows, []string{
				"  " + s.Channels[i].Name + "-" + strconv.Itoa(lane.Lane), number(lane.Counts.Taken), number(lane.Counts.Written),
				number(lane.Counts.Failed), number(lane.Batch), number(lane.Parked), doing,
			})
		}
	}

	return rows
}
