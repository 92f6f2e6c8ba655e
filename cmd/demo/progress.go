package main

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/actors"
)

// progressLines describes a job: a line for the job and, with channels, one for each channel.
func progressLines(s *actors.Snapshot, took time.Duration, channels bool) []string {
	var (
		inFlight int
		lag      int64
	)

	for i := range s.Queues {
		inFlight += s.Queues[i].InFlight
		lag += int64(s.Queues[i].End - s.Queues[i].Min)
	}

	done := s.Counts.Completed + s.Counts.Filtered + s.Counts.DeadLettered
	line := fmt.Sprintf("%s  %s %s   done %s (%s/s)   in flight %s   lag %s", s.Job, s.State, clockTime(took),
		number(int(done)), number(int(float64(done)/max(took.Seconds(), 1e-3))), number(inFlight), number(int(lag)))

	if s.Counts.SentBack > 0 {
		line += fmt.Sprintf("   sent back %s", number(int(s.Counts.SentBack)))
	}

	lines := []string{line}
	if !channels {
		return lines
	}

	for i := range s.Channels {
		c := &s.Channels[i]
		line := fmt.Sprintf("  %-10s %-8s taken %8s", c.Name, plural(len(c.Lanes), "lane"), number(int(c.Counts.Taken)))

		if c.Counts.Failed > 0 {
			line += fmt.Sprintf("   failed %s", number(int(c.Counts.Failed)))
		}

		if c.Counts.Written > 0 {
			line += fmt.Sprintf("   written %s", number(int(c.Counts.Written)))
		}

		lines = append(lines, line)
	}

	return lines
}

func clockTime(d time.Duration) string {
	s := int(d.Seconds())

	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// tell says in one line what an event means to somebody who watches; empty for the others.
func tell(event actors.Event) string {
	switch e := event.(type) {
	case *actors.MessageReturned:
		return fmt.Sprintf("%s: %s is sent back for %v after delivery %d: %v", e.Job, e.MessageID, e.Delay, e.Delivery, e.Err)
	case *actors.MessageDead:
		return fmt.Sprintf("%s: %s is a dead letter: %v", e.Job, e.MessageID, e.Err)
	case *actors.LaneHung:
		return fmt.Sprintf("%s: lane %s-%d hangs in %s with %s: it is replaced", e.Job, e.Channel, e.Lane, e.Stage, e.MessageID)
	case *actors.GroupWarned:
		if e.Warning != "" {
			return fmt.Sprintf("%s: warning: %s", e.Job, e.Warning)
		}
	case *actors.QueueAssigned:
		if e.From > 0 || e.Done > 0 {
			return fmt.Sprintf("%s: %s goes on at %d; %s above it",
				e.Job, e.Queue, e.From, plural(int(e.Done), "finished message"))
		}
	case *actors.QueueWaits:
		return fmt.Sprintf("%s: %s cannot be read, again in %v: %v", e.Job, e.Queue, e.Retry, e.Err)
	case *actors.CommitFailed:
		return fmt.Sprintf("%s: %s: the commit failed: %v", e.Job, e.Queue, e.Err)
	}

	return ""
}
