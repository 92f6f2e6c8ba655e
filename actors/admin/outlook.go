package admin

import (
	"time"

	"github.com/millrace/millrace/actors"
)

// outlook is since when a queue is as it is, and what happens next.
type outlook struct {
	since  time.Time
	then   string
	thenAt time.Time
}

// outlookOf says since when a queue is as its cause says, and what happens next; nothing of one that moves.
func outlookOf(q *actors.QueueStatus, cause Cause) outlook {
	waits := func(then string) outlook { return outlook{since: q.WaitsSince, then: then} }

	switch cause { //nolint:exhaustive // what has to do with a message is below
	case Moves:
		return outlook{}
	case CommitFails:
		return outlook{since: q.CommitErrSince, then: "the next commit tries it again"}
	case Paused:
		return waits("nothing, until it is resumed")
	case PullFails:
		return outlook{since: q.WaitsSince, then: "the broker is asked again", thenAt: q.RetryAt}
	case PullUnanswered:
		return outlook{since: q.AskedAt, then: "the broker's answer"}
	case LeaseEnded:
		return waits("the group's next assignment")
	case StartUnanswered:
		return waits("the broker's answer, or another try after 30s")
	case StartFails:
		return outlook{since: q.WaitsSince, then: "the broker is asked again", thenAt: q.RetryAt}
	case Rewound:
		return outlook{
			since: q.WaitsSince, then: "the broker is asked again; its answer is followed when it stays so, or after a seek",
			thenAt: q.RetryAt,
		}
	case FormerRun:
		return waits("it begins when that has ended, at the latest by its deadline")
	case NoMessages:
		return waits("the next message")
	}

	if q.Blocking != nil {
		return outlook{since: q.MovedAt, then: q.Blocking.Next, thenAt: q.Blocking.NextAt}
	}

	return waits("its last commit")
}
