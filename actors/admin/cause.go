package admin

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/actors"
)

// Cause is a way in which an offset stands still. docs/why.md lists them.
type Cause string

// What is in the way of a queue that stands: a message, and what it does.
const (
	// Runs: a stage, a gather stage or a sink has the message.
	Runs Cause = "runs"
	// Hangs: it has run past its deadline, and does not heed that yet.
	Hangs Cause = "hangs"
	// WaitsForLane: every lane that may take it is busy.
	WaitsForLane Cause = "waits-for-lane"
	// InBatch: it waits for its batch to be full, or old enough.
	InBatch Cause = "in-batch"
	// RetryInPlace: it has failed and is tried again where it is.
	RetryInPlace Cause = "retry-in-place"
	// BreakerOpen: nearly everything fails at a stage or a sink, so the channel pauses and tries one message at a time.
	BreakerOpen Cause = "breaker-open"
	// BehindKey: an earlier message of its key is tried again.
	BehindKey Cause = "behind-key"
	// SendBackRefused: it has failed, and the broker does not take it back, or has not yet.
	SendBackRefused Cause = "send-back"
	// DeadLetterRefused: it has failed for good, and the broker does not take it into the dead letters, or has not yet.
	DeadLetterRefused Cause = "dead-letter"
	// HandedOn: a lane is done with it and hands on what came of it at the end of its turn, after other messages.
	HandedOn Cause = "handed-on"
)

// What is in the way of a queue without a message that is.
const (
	// CommitFails: messages are finished, and the broker does not store that.
	CommitFails Cause = "commit-fails"
	// Paused: somebody has paused it.
	Paused Cause = "paused"
	// PullFails: the broker cannot be asked for messages.
	PullFails Cause = "pull-fails"
	// PullUnanswered: the broker was asked and says nothing.
	PullUnanswered Cause = "pull-unanswered"
	// LeaseEnded: another member has the queue, and the assignment that says so has not come.
	LeaseEnded Cause = "lease-ended"
	// StartUnanswered: the broker was asked where to start and says nothing.
	StartUnanswered Cause = "start-unanswered"
	// StartFails: the broker cannot say where to start.
	StartFails Cause = "start-fails"
	// Rewound: the broker's stored offset is below what was committed.
	Rewound Cause = "rewound"
	// FormerRun: a message of the queue's former ownership still runs here.
	FormerRun Cause = "former-run"
	// Closing: the queue is given up or sought, or the job drains; what runs may end first.
	Closing Cause = "closing"
	// NoMessages: all there is has been worked off.
	NoMessages Cause = "no-messages"
	// Moves: it does not stand.
	Moves Cause = "moves"
)

// What is in the way of a job as a whole.
const (
	// JobStarts: sinks open, the group is joined, or stages open.
	JobStarts Cause = "job-starts"
	// NoQueue: there is no assignment yet, or no queue in it.
	NoQueue Cause = "no-queue"
	// JobDrains: the job ends.
	JobDrains Cause = "job-drains"
	// JobStopped: it has ended.
	JobStopped Cause = "job-stopped"
)

const (
	// standsAfter is how long a commit watermark may rest on a message before it is called standing.
	standsAfter = 5 * time.Second
	// pullPatience is how long the broker may hold a pull before it is called unanswered; brokers hold one for half a minute.
	pullPatience = time.Minute
)

// causeOf says what is in the way of a queue.
func causeOf(q *actors.QueueStatus, now time.Time) (Cause, string) {
	switch q.Waits {
	case "its start":
		if q.Err != "" {
			return StartFails, "the broker cannot say where to start: " + q.Err
		}

		return StartUnanswered, "the broker has been asked where to start and has not answered"
	case "its former run":
		return FormerRun, "a message of its former ownership still runs here; the queue begins when that has ended"
	case "its offset to come back":
		return Rewound, "the broker's offset has gone back: " + q.Err
	}

	switch stands := q.Blocking != nil && now.Sub(q.MovedAt) >= standsAfter; {
	case q.CommitErr != "" && q.Committed < q.Min:
		return CommitFails, "what is finished cannot be committed: " + q.CommitErr
	case stands:
		return causeOfMessage(q.Blocking)
	case q.Waits == "its end":
		return Closing, "it is given up, sought, or drained; what runs of it may end first"
	case q.Paused != "":
		return Paused, "it is paused: " + q.Paused
	case q.Err != "":
		return PullFails, "the broker cannot be asked for messages: " + q.Err
	case q.Waits == "its assignment":
		return LeaseEnded, "the broker says that it belongs to another member; the assignment has not said so yet"
	case !q.AskedAt.IsZero() && now.Sub(q.AskedAt) >= pullPatience:
		return PullUnanswered, "the broker has been asked for messages and has not answered"
	case q.Blocking != nil, q.Next < q.End, q.Committed < q.End:
		return Moves, "it moves"
	default:
		return NoMessages, "all there is has been worked off"
	}
}

// onItsWay is what a message does that is in no place where it could be found.
const onItsWay = "is on its way between two actors"

// causeOfMessage says what keeps a message.
func causeOfMessage(b *actors.Blocking) (Cause, string) {
	at := " in channel " + b.Channel

	switch b.Doing {
	case "runs":
		if b.Expired {
			return Hangs, "stage " + b.Stage + at + " is past its deadline and does not return"
		}

		return Runs, "stage " + b.Stage + at + " has a message"
	case "waits for a lane":
		return WaitsForLane, "a message waits for a lane" + at
	case "waits in a batch":
		return InBatch, "a message waits in a batch" + at
	case "is retried later":
		return RetryInPlace, "a message has failed and is tried again" + at
	case actors.WaitsForBreaker:
		return BreakerOpen, fmt.Sprintf("%d of %d first attempts of stage %s%s have failed, so the channel pauses since %s "+
			"and tries one message at a time: %s", b.Breaker.Failed, b.Breaker.Seen, b.Breaker.Stage, at,
			b.Breaker.Since.UTC().Format(time.RFC3339), b.Breaker.LastError)
	case "waits behind its key":
		return BehindKey, "a message waits behind an earlier one of its key" + at
	case "goes back to the broker":
		return SendBackRefused, "a message has failed, and the broker has not taken it back"
	case "goes to the dead letters":
		return DeadLetterRefused, "a message has failed for good, and the broker has not taken it into the dead letters"
	case "is left to the next owner":
		return Closing, "a message is left to the queue's next owner"
	default:
		return HandedOn, "a lane is done with a message, and hands on what came of it when other messages of its turn are done"
	}
}
