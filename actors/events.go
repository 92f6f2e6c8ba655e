package actors

import (
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Event is what a job publishes on its actor system's EventStream. Every event is a pointer to one of the structs of this
// file. Subscribers run on the goroutine of the actor that publishes: they must return at once and must not panic.
type Event interface {
	// JobName returns the name of the job that published the event.
	JobName() string
}

// In is the part that all events share.
type In struct {
	// Job is the job's name.
	Job string
}

// JobName returns Job.
func (i In) JobName() string { return i.Job }

// JobStarted says that all lanes are open and the job has joined its group.
type JobStarted struct{ In }

// JobStopped says that the job has ended; it is the last event of a job.
type JobStopped struct {
	In

	Report *Report
}

// GroupWarned says what is wrong with the group as a whole while work goes on, such as members that subscribe differently.
type GroupWarned struct {
	In

	// Warning is that in words, with the cure; empty when it is mended.
	Warning string
}

// QueueAssigned says that a queue is owned and pulled from From on.
type QueueAssigned struct {
	In

	Queue pipeline.Queue
	Epoch uint64
	From  pipeline.Offset
	// Done is how many messages above From are finished already and will not be done again.
	Done int64
}

// QueueRevoked says that a queue has been given up.
type QueueRevoked struct {
	In

	Queue pipeline.Queue
	Epoch uint64
	// Committed is the confirmed commit watermark, Unfinished how many messages were left to the next owner.
	Committed  pipeline.Offset
	Unfinished int
	// Err is why the last commit could not be confirmed; nil when it was.
	Err error
}

// QueueWaits says that a queue cannot be started or pulled for now; it is tried again after Retry.
type QueueWaits struct {
	In

	Queue pipeline.Queue
	Err   error
	Retry time.Duration
}

// OffsetJumped says that the broker no longer holds what was to be read next; pulling goes on at To.
type OffsetJumped struct {
	In

	Queue    pipeline.Queue
	From, To pipeline.Offset
}

// OffsetRewound says that the broker's offsets are behind what this job has committed. Followed says whether the job
// goes back to To, or waits.
type OffsetRewound struct {
	In

	Queue    pipeline.Queue
	From, To pipeline.Offset
	Followed bool
}

// MessageReturned says that a failed message was sent back to the broker and will be delivered again after Delay.
type MessageReturned struct {
	In

	Queue     pipeline.Queue
	Offset    pipeline.Offset
	MessageID string
	Delivery  int
	Delay     time.Duration
	Err       error
}

// MessageDead says that a message was parked in the dead letters.
type MessageDead struct {
	In

	Queue     pipeline.Queue
	Offset    pipeline.Offset
	MessageID string
	Attempts  int
	Err       error
}

// MessageDropped says that a broadcasting job dropped a failed message.
type MessageDropped struct {
	In

	Queue     pipeline.Queue
	Offset    pipeline.Offset
	MessageID string
	Err       error
}

// ReturnRefused says that the broker refused a send-back or a dead letter; it is tried again after Retry, and the offset
// waits.
type ReturnRefused struct {
	In

	Queue  pipeline.Queue
	Offset pipeline.Offset
	Tries  int
	Retry  time.Duration
	Err    error
}

// Committed says that a checkpoint was confirmed by the broker.
type Committed struct {
	In

	Queue pipeline.Queue
	Epoch uint64
	Next  pipeline.Offset
	// Above is how many messages above Next the checkpoint holds as finished.
	Above int64
}

// CommitFailed says that a checkpoint could not be stored; it is tried again.
type CommitFailed struct {
	In

	Queue pipeline.Queue
	Err   error
}

// BreakerOpened says that a channel pauses, because nearly all first attempts of a stage have failed: Failed of Seen. One message
// is tried after Retry, and then one at a time with growing pauses.
type BreakerOpened struct {
	In

	// Stage is "sink" or "gather" for the end of the channel.
	Channel, Stage string
	Failed, Seen   int
	Retry          time.Duration
	// Err is the last failure.
	Err error
}

// BreakerClosed says that a channel goes on, since a message has got through.
type BreakerClosed struct {
	In

	Channel, Stage string
	// Open is how long the channel has paused, Tried how many messages were tried.
	Open  time.Duration
	Tried int
}

// LaneHung says that a call did not return after its deadline; its lane was given up and replaced.
type LaneHung struct {
	In

	Channel, Stage string
	Lane           int
	// Queue, Offset and MessageID name one message of the call.
	Queue     pipeline.Queue
	Offset    pipeline.Offset
	MessageID string
	// Hung is how many lanes are hung now.
	Hung int
}

// LaneReturned says that a call of a hung lane has come back after all; its result was dropped.
type LaneReturned struct {
	In

	Channel string
	Lane    int
	Hung    int
}
