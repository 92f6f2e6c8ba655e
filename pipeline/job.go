package pipeline

import "time"

// Job describes a multi-stage streaming job: where its messages come from, the channels they go through, and what
// happens to failures. It is a plain value that [Compile] checks and turns into a [Plan].
type Job struct {
	// Name names the job in logs, actor names and reports: letters, digits, '.', '_' and '-'.
	Name string
	// Source is what the job consumes.
	Source Source
	// Channels are the job's channels, at least one. Names are unique.
	Channels []Channel
	// Retry is the policy for failing messages; the zero value means the defaults documented at its fields.
	Retry RetryPolicy
}

// Source is what a job consumes: topics, in the name of a consumer group.
type Source struct {
	// Topics are the topics to read: at least one, and none of them where the job's own dead letters go.
	Topics []string
	// Group is the consumer group whose offsets are used; empty means the job's name.
	Group string
	// Start is where to begin where the group has no stored offset. The zero value is [First].
	Start Start
	// Broadcast makes every member read every queue. A failed message is then logged, counted and dropped.
	Broadcast bool
	// To names the channel that messages enter first; empty means the first of Job.Channels.
	To string
}

// Order says what order a channel keeps.
type Order uint8

// The orders. The zero value is OrderNone.
const (
	// OrderNone: lanes take messages as they come.
	OrderNone Order = iota
	// OrderByKey: messages of one key run in the order of their queue, one at a time; those without a key keep the order
	// of their queue. A stage that gives messages a new key keeps the order of the old one only.
	OrderByKey
	// OrderByQueue: messages of one queue run in its order, one at a time.
	OrderByQueue
)

// String returns none, key or queue.
func (o Order) String() string {
	switch o {
	case OrderByKey:
		return "key"
	case OrderByQueue:
		return "queue"
	case OrderNone:
		return "none"
	default:
		return "unknown"
	}
}

// Channel is a set of parallel lanes that run the same stages; it ends in a Sink, in Routes, or in a Gather whose
// outputs take the Routes.
type Channel struct {
	// Name is unique in the job: letters, digits, '.', '_' and '-'.
	Name string
	// Lanes is how many messages are worked on at once; 0 means 1, and 4096 is the most.
	Lanes int
	// Order is what order the lanes keep. In an ordered channel, and in all that it feeds, failing messages are retried
	// in place. An ordered channel is the one that Source.To names, or is fed by a single channel that has the same order
	// or OrderByQueue.
	Order Order
	// Timeout is how long a lane may work at one message (or a sink at one batch) before it is given up; 0 means 30 s.
	Timeout time.Duration
	// Breaker says when the channel pauses because something that it depends on is down; the zero value is on.
	Breaker Breaker
	// Stages are called one after the other for each message. None is allowed.
	Stages []Stage
	// Batch says how messages are collected for Sink or Gather.
	Batch Batch
	// Gather makes messages of a whole batch. Optional; its outputs take the Routes.
	Gather *GatherStage
	// Routes send the outputs to other channels. Each route that matches gets a copy; an output that none matches is
	// finished. A channel has either Routes or a Sink.
	Routes []Route
	// Sink takes the outputs. See Routes.
	Sink Sink
}

// Stage is a named Transform of a channel.
type Stage struct {
	// Name is unique in its channel: letters, digits, '.', '_' and '-'; "sink" and "gather" are taken.
	Name string
	// New makes the instance of one lane. It is called once for each lane at the start of the job and once more for each
	// lane that replaces a hung one, so an instance is never used by two goroutines at once.
	New func() (Transform, error)
}

// GatherStage is a named BatchTransform that ends a channel.
type GatherStage struct {
	// Name is what reports call it; unique among the channel's stages, and empty means "gather".
	Name string
	// New makes the instance of one lane, as [Stage].New does.
	New func() (BatchTransform, error)
}

// Batch says when a collected batch is handed on: when it holds Messages messages or Bytes bytes, or when its first
// message has waited for Every, or when the job drains or a queue is revoked. The zero value hands on what a lane has
// done at once, without waiting.
type Batch struct {
	// Messages is the most messages in a batch; 0 means 256.
	Messages int
	// Bytes is the size at which a batch is full, measured by [Message.Size]; 0 means no limit by size.
	Bytes int64
	// Every is the longest wait of a message in an unfinished batch; 0 means no waiting when Messages and Bytes are 0
	// too, otherwise 1 s.
	Every time.Duration
}

// Route sends messages to another channel.
type Route struct {
	// To names the channel.
	To string
	// When picks the messages; nil means all. It must not change the message.
	When func(m *Message) bool
	// Condition picks among those as When does, where to pick can fail: its error is the message's failure, as that of a stage
	// is. Nil means all.
	Condition func(m *Message) (bool, error)
}
