package actors

import (
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// GetSnapshot asks the engine for a *[Snapshot]. Send it with a request; any number of readers may ask.
type GetSnapshot struct{}

// Drain asks the engine to stop pulling, let everything in flight finish, commit, and stop. The answer, to each who
// asked, is a *[Report]. The engine stops afterwards; a second Drain with a shorter budget shortens the first.
type Drain struct {
	// Budget is how long work in flight may take; 0 means Options.DrainBudget, below 0 means not at all.
	Budget time.Duration
}

// Pause stops pulling from a queue; what is in flight is finished. The answer is a *[Done].
type Pause struct {
	Queue pipeline.Queue
	// Why is shown by snapshots; empty means "paused".
	Why string
}

// Resume takes a pause back. The answer is a *[Done].
type Resume struct{ Queue pipeline.Queue }

// Seek makes a queue go on from another offset, backward or forward, without a restart: its work in flight ends as for a
// revoked queue, the offset is committed, and pulling begins there. Everything from the offset on is done again,
// everything below it counts as finished. The answer is a *[Done], sent when the offset is committed.
type Seek struct {
	Queue  pipeline.Queue
	Offset pipeline.Offset
}

// Done answers Pause, Resume and Seek.
type Done struct {
	// Err says why the request could not be carried out; nil when it was.
	Err error
}

// Report says how a job ended.
type Report struct {
	// Clean: everything that was admitted is finished and committed.
	Clean bool
	// Err is why the job stopped by itself; nil when it was asked to.
	Err error
	// Committed is the confirmed commit watermark of each queue that the job still owned.
	Committed map[pipeline.Queue]pipeline.Offset
	// Unfinished lists messages that were in flight when the budget ended, at most 100 of them; they come again.
	Unfinished []Unfinished
	// UnfinishedCount is how many there were.
	UnfinishedCount int
	// Took is how long the drain lasted.
	Took time.Duration
}

// Unfinished is a message that a stopped job leaves behind.
type Unfinished struct {
	Queue     pipeline.Queue
	Offset    pipeline.Offset
	MessageID string
	// Holder says where it was: "classify-0 stage enrich", "waits for classify", ...
	Holder string
}

// The messages below travel between the actors of one job. One that arrives after its receiver has stopped is not worth a
// line in the log, which would print it whole.

// internal is embedded in all of them.
type internal struct{}

// IgnoreDeadLetterLogging keeps protoactor from logging the message.
func (internal) IgnoreDeadLetterLogging() {}

// wake tells a lane that its inbox or its timer has something for it.
type wake struct{ internal }

// flush tells a lane to hand on half-full batches and to give up parked messages of closing queues that are due after by.
type flush struct {
	internal

	by int64
}

// laneReady, laneFailed and laneClosed tell the engine how a lane is.
type (
	laneReady struct {
		internal

		lane *lane
	}
	laneFailed struct {
		internal

		lane *lane
		err  error
	}
	laneClosed struct {
		internal

		lane *lane
		err  error
	}
)

// laneHung tells the engine that the tracker has fenced a lane; laneReplaced gives the tracker the new one.
type (
	laneHung struct {
		internal

		old, fresh *lane
	}
	laneReplaced struct {
		internal

		lane *lane
	}
)

// own gives the tracker a queue to keep; admit tells it what has been pulled; passed tells it that nothing below next
// will arrive any more.
type (
	own struct {
		internal

		slot *slot
		from consumer.Checkpoint
	}
	admit struct {
		internal

		block *block
	}
	passed struct {
		internal

		slot *slot
		next pipeline.Offset
	}
)

// refund gives credit back to a pull-queue actor.
type refund struct {
	internal

	messages int
	bytes    int64
	low      pipeline.Offset
}

// slotQuiet tells the engine that nothing of a queue that was given up runs any more.
type slotQuiet struct {
	internal

	slot *slot
}

// closeSlots asks the tracker to end queues whose pulling has stopped: what runs may end until by, then a confirmed
// commit. It answers with a slotClosed for each.
type (
	closeSlots struct {
		internal

		slots []*slot
		by    int64
		// drain: the job ends; what is queued is finished too, not only what runs.
		drain bool
	}
	slotClosed struct {
		internal

		slot *slot
		// committed is the confirmed checkpoint.
		committed consumer.Checkpoint
		err       error
		left      []Unfinished
		leftCount int
		// running is how many messages of the queue are still in a lane; slotQuiet follows when there are none.
		running int
	}
)
