package actors

import (
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
)

// Rewind says what to do when a broker's answer would move a queue backward without anybody having asked: its stored
// offset is below what this job has committed, or the queue ends below where the job is.
type Rewind uint8

const (
	// RewindFollow follows the broker when it gives the same answer for RewindPatience: messages may be done again, none is
	// lost. It is the default.
	RewindFollow Rewind = iota
	// RewindWait keeps asking until the broker's answer is no longer behind, or somebody seeks the queue.
	RewindWait
)

// Options tune a running job. The zero value is the default of each field.
type Options struct {
	// Limits bound what is in flight of one queue: 4096 messages, 64 MiB, 65,536 offsets by default.
	Limits consumer.Limits
	// CommitEvery is the longest time that a finished message waits for its checkpoint; 0 means 5 s.
	CommitEvery time.Duration
	// DrainBudget is how long a stopping job lets work in flight finish; 0 means 30 s.
	DrainBudget time.Duration
	// RevokeBudget is how long running work of a revoked queue may go on before the queue is given up; 0 means 5 s. It
	// should be below the patience of the broker.
	RevokeBudget time.Duration
	// HungLanes is how many lanes may be hung at a time before the job stops with an error; 0 means 16.
	HungLanes int
	// ReturnBackoff is the pause after a first refused send-back or dead letter; it doubles up to a minute, with jitter.
	// 0 means 5 s.
	ReturnBackoff time.Duration
	// PullBackoff is the pause after a first failed pull or start look-up; it doubles up to 30 s, with jitter. 0 means 500 ms.
	PullBackoff time.Duration
	// Rewind is what to do when the broker's offsets have gone backward; RewindPatience is how long an answer must stay the
	// same before it is followed, 0 means 10 s.
	Rewind         Rewind
	RewindPatience time.Duration
	// Instance names this member of the consumer group; see consumer.Subscription.
	Instance string
	// Logger gets what happens; nil means none.
	Logger *zap.Logger
}

const (
	defaultCommitEvery    = 5 * time.Second
	defaultDrainBudget    = 30 * time.Second
	defaultRevokeBudget   = 5 * time.Second
	defaultHungLanes      = 16
	defaultReturnBackoff  = 5 * time.Second
	defaultPullBackoff    = 500 * time.Millisecond
	defaultRewindPatience = 10 * time.Second

	maxReturnBackoff = time.Minute
	maxPullBackoff   = 30 * time.Second
)

// withDefaults checks the options and fills in the defaults.
func (o Options) withDefaults() (Options, error) {
	if err := o.Limits.Validate(); err != nil {
		return o, fmt.Errorf("actors: options: %w", err)
	}

	o.Limits = o.Limits.OrDefaults()

	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{
		{"CommitEvery", &o.CommitEvery, defaultCommitEvery},
		{"DrainBudget", &o.DrainBudget, defaultDrainBudget},
		{"RevokeBudget", &o.RevokeBudget, defaultRevokeBudget},
		{"ReturnBackoff", &o.ReturnBackoff, defaultReturnBackoff},
		{"PullBackoff", &o.PullBackoff, defaultPullBackoff},
		{"RewindPatience", &o.RewindPatience, defaultRewindPatience},
	} {
		if *d.value < 0 {
			return o, fmt.Errorf("actors: options: %s is %s; it must not be negative", d.name, *d.value)
		}

		if *d.value == 0 {
			*d.value = d.def
		}
	}

	if o.HungLanes < 0 {
		return o, fmt.Errorf("actors: options: HungLanes is %d; it must not be negative", o.HungLanes)
	}

	if o.HungLanes == 0 {
		o.HungLanes = defaultHungLanes
	}

	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}

	return o, nil
}
