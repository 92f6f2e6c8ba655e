package actors

import (
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Snapshot is the state of a job at one moment. It belongs to whoever asked for it.
type Snapshot struct {
	// Job is the job's name, At when the snapshot was taken.
	Job string    `json:"job"`
	At  time.Time `json:"at"`
	// State is starting, running, draining, stopping or stopped.
	State string `json:"state"`
	// Waits says what the job as a whole waits for, since WaitsSince: a sink that opens, its group, its first assignment,
	// a queue, the end of a drain. Empty while it has queues.
	Waits      string    `json:"waits,omitempty"`
	WaitsSince time.Time `json:"waitsSince,omitzero"`
	// Warning says what is wrong with the group as a whole while work goes on, and how to mend it; empty when nothing is.
	Warning string `json:"warning,omitempty"`
	// Queues are the queues of the job's assignment, sorted by topic, broker and id.
	Queues []QueueStatus `json:"queues"`
	// Channels are in the order of the job.
	Channels []ChannelStatus `json:"channels"`
	// Counts are totals since the start of the job.
	Counts TrackerCounts `json:"counts"`
	// Away is how many messages this process has sent back for a delay that is not over; the first of them comes again at
	// BackAt or soon after, to whoever owns its queue then. They are no longer in flight and hold no offset.
	Away   int64     `json:"away"`
	BackAt time.Time `json:"backAt,omitzero"`
	// Hung is how many lanes are given up because a call does not return.
	Hung int `json:"hung"`
}

// QueueStatus is the state of one queue.
type QueueStatus struct {
	Queue pipeline.Queue `json:"queue"`
	Epoch uint64         `json:"epoch"`
	// Committed is the confirmed checkpoint's offset, Min the commit watermark, Next the offset to pull next, End the
	// broker's end of the queue as of the last pull. Committed <= Min <= Next <= End.
	Committed pipeline.Offset `json:"committed"`
	Min       pipeline.Offset `json:"min"`
	Next      pipeline.Offset `json:"next"`
	End       pipeline.Offset `json:"end"`
	// InFlight and Bytes are admitted and not finished; Above is how many offsets above Min are finished.
	InFlight int   `json:"inFlight"`
	Bytes    int64 `json:"bytes"`
	Above    int64 `json:"above"`
	// MovedAt is when Min moved last.
	MovedAt time.Time `json:"movedAt,omitzero"`
	// Waits says what the next pull waits for, since WaitsSince: "messages", "credit", "a pause", "a retry", "its start",
	// "its former run", "its offset to come back", "its end", "its assignment". Empty while messages flow.
	Waits      string    `json:"waits,omitempty"`
	WaitsSince time.Time `json:"waitsSince,omitzero"`
	// Limit is the limit that is used up while a pull waits for credit: "messages", "bytes" or "span".
	Limit string `json:"limit,omitempty"`
	// AskedAt is when the pull began that the broker has not answered yet; zero when none is under way.
	AskedAt time.Time `json:"askedAt,omitzero"`
	// Paused says why, empty when not.
	Paused string `json:"paused,omitempty"`
	// Err is the last error of a look-up or a pull; RetryAt is when it is tried again.
	Err     string    `json:"err,omitempty"`
	RetryAt time.Time `json:"retryAt,omitzero"`
	// CommitErr is the error of the last commit, since CommitErrSince in a row; the next commit is within
	// Options.CommitEvery.
	CommitErr      string    `json:"commitErr,omitempty"`
	CommitErrSince time.Time `json:"commitErrSince,omitzero"`
	// Blocking is the message at Min; nil when nothing is in flight.
	Blocking *Blocking `json:"blocking,omitempty"`
}

// Lag returns how many messages the queue holds that are not committed.
func (q *QueueStatus) Lag() int64 { return int64(q.End - q.Committed) }

// Blocking is the message that keeps a commit watermark where it is.
type Blocking struct {
	Offset    pipeline.Offset `json:"offset"`
	MessageID string          `json:"messageId"`
	Key       string          `json:"key,omitempty"`
	// Attempt counts the deliveries by the broker and the retries in place, 1 for the first; Attempts is the most of them.
	Attempt  int `json:"attempt"`
	Attempts int `json:"attempts"`
	// Doing says what the message does: "runs", "waits for a lane", "waits in a batch", "is retried later",
	// "waits behind its key", "goes back to the broker", "goes to the dead letters", "is left to the next owner",
	// "waits for what is down", "is on its way between two actors".
	Doing string `json:"doing"`
	// Channel, Lane and Stage say where; Lane is -1 where it is not a certain one.
	Channel string `json:"channel,omitempty"`
	Lane    int    `json:"lane"`
	Stage   string `json:"stage,omitempty"`
	// Since is when that began, as far as known.
	Since time.Time `json:"since,omitzero"`
	// Expired: the call has run past its deadline, and does not heed that yet.
	Expired bool `json:"expired,omitempty"`
	// Breaker says what is down, for a message that waits for it.
	Breaker *BreakerStatus `json:"breaker,omitempty"`
	// LastError is the last failure or refusal; empty when there was none.
	LastError string `json:"lastError,omitempty"`
	// Next says what happens next, and NextAt when, if that is known.
	Next   string    `json:"next,omitempty"`
	NextAt time.Time `json:"nextAt,omitzero"`
	// Stack is what the running call is at, the innermost frame first; see [Snapshot.AddStacks].
	Stack []string `json:"stack,omitempty"`

	call laneCall
}

// ChannelStatus is the state of one channel.
type ChannelStatus struct {
	Name string `json:"name"`
	// Waiting is how many messages wait for a lane.
	Waiting int `json:"waiting"`
	// Breaker says why the channel pauses; nil when it does not. Opened is how often it has.
	Breaker *BreakerStatus `json:"breaker,omitempty"`
	Opened  int64          `json:"breakerOpened,omitempty"`
	Lanes   []LaneStatus   `json:"lanes"`
	// Counts are the sum over the lanes.
	Counts LaneCounts `json:"counts"`
	// Plugins are what plugins have counted themselves; see [Snapshot.AddCounts].
	Plugins []PluginCounts `json:"plugins,omitempty"`

	meters []meter
}

// BreakerStatus is why a channel pauses; see [pipeline.Breaker].
type BreakerStatus struct {
	// Stage is where it has opened, Since when; "sink" or "gather" is the end of the channel.
	Stage string    `json:"stage"`
	Since time.Time `json:"since"`
	// Failed of the last Seen attempts had failed then.
	Failed int `json:"failed"`
	Seen   int `json:"seen"`
	// Tried is how many messages were tried since.
	Tried     int    `json:"tried"`
	LastError string `json:"lastError"`
	// NextAt is when the next one is tried; zero while one is.
	NextAt time.Time `json:"nextAt,omitzero"`
}

// LaneStatus is the state of one lane.
type LaneStatus struct {
	Lane int `json:"lane"`
	// Stage is the stage that runs now; empty when the lane is idle or between calls.
	Stage string `json:"stage,omitempty"`
	// Running is how long the present call has run, as far as known.
	Running time.Duration `json:"runningNanoseconds,omitempty"`
	// Batch is how many messages wait in the lane's batch, Parked how many for a retry in place.
	Batch  int `json:"batch"`
	Parked int `json:"parked"`
	// Stack is what the running call is at; see [Snapshot.AddStacks].
	Stack  []string   `json:"stack,omitempty"`
	Counts LaneCounts `json:"counts"`

	call laneCall
}

// What a queue waits for, where more than one place says it.
const (
	waitsEnd    = "its end"
	waitsCredit = "credit"
)
