package embedded

import (
	"errors"
	"fmt"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/zap"
)

// Options configure [Open]. Only Dir must be set; the zero value of every other field means the default that is named
// at the field.
type Options struct {
	// Dir is the broker's directory. It is made when it is missing; one that holds anything else is refused.
	Dir string
	// NoSync makes Publish, Commit, SendBack and DeadLetter return before the data is on stable storage: a crash of the
	// machine, not of the process, may then lose what was acknowledged last. The default is to wait for the disk.
	NoSync bool
	// HoldPull is how long a pull waits for new messages before it returns an empty batch; 0 means 15 s.
	HoldPull time.Duration
	// Patience is how long a queue that was taken away from a member waits for that member's Release before it goes to
	// its next owner; 0 means 10 s.
	Patience time.Duration
	// KeepFree is how many bytes of the disk Publish leaves free: below, it fails with [ErrDiskFull], and commits and
	// returns, which are small, go on. 0 means 64 MiB, a guess; below 0 nothing is checked.
	KeepFree int64
	// Retention says what is kept of a topic that Topics does not name. The zero value keeps everything.
	Retention Retention
	// Topics says what is kept of single topics.
	Topics map[string]Retention
	// PruneEvery is how often retention is looked after, when there is any; 0 means a minute.
	PruneEvery time.Duration
	// OnPrune is told what retention deleted and what it could not delete. It is called from a goroutine of the broker,
	// one call at a time, and must not call the broker's Close. May be nil.
	OnPrune func(Pruned)
	// Logger gets what nobody is there to be told: damage met in the background, impatience, retention, the failure of
	// the disk. Nil means no log.
	Logger *zap.Logger
	// FS is the file system, for tests that break it. Nil means the disk.
	FS vfs.FS
	// healEvery is how often a full disk is looked at; 0 means defaultHealEvery.
	healEvery time.Duration
}

// Retention says what a topic keeps. Messages are deleted from the old end of a queue when either limit asks for it.
type Retention struct {
	// Age is how long a message is kept after it was published; 0 means for ever.
	Age time.Duration
	// Bytes is how much a topic keeps, shared evenly by its queues; 0 means everything.
	Bytes int64
	// Unread says what happens to messages over the limits that some group has not read. The zero value is [KeepUnread].
	Unread Unread
}

// Unread is what retention does with messages that a group has not read.
type Unread uint8

// The policies. The zero value is KeepUnread.
const (
	// KeepUnread keeps them until every group that has ever stored an offset in the queue, or has members that read it,
	// is past them. What is held back is reported.
	KeepUnread Unread = iota
	// DropUnread deletes them, counted and reported for each group.
	DropUnread
)

const (
	defaultHoldPull   = 15 * time.Second
	defaultPatience   = 10 * time.Second
	defaultKeepFree   = 64 << 20
	defaultPruneEvery = time.Minute
	defaultHealEvery  = time.Second
)

// withDefaults returns o with its zero values filled in, or an error that names every field that makes no sense.
func (o Options) withDefaults() (Options, error) {
	var wrong []error

	if o.Dir == "" {
		wrong = append(wrong, errors.New("embedded: Options.Dir is empty: name the directory to keep the data in"))
	}

	for name, d := range map[string]time.Duration{"HoldPull": o.HoldPull, "Patience": o.Patience, "PruneEvery": o.PruneEvery} {
		if d < 0 {
			wrong = append(wrong, fmt.Errorf("embedded: Options.%s is %s, below 0", name, d))
		}
	}

	wrong = append(wrong, o.Retention.check("Retention"))
	for topic, r := range o.Topics {
		wrong = append(wrong, checkName("topic", topic), r.check("Topics["+topic+"]"))
	}

	o.HoldPull = orDefault(o.HoldPull, defaultHoldPull)
	o.Patience = orDefault(o.Patience, defaultPatience)
	o.PruneEvery = orDefault(o.PruneEvery, defaultPruneEvery)
	o.KeepFree = orDefault(o.KeepFree, defaultKeepFree)
	o.healEvery = orDefault(o.healEvery, defaultHealEvery)

	if o.Logger == nil {
		o.Logger = zap.NewNop()
	}

	return o, errors.Join(wrong...)
}

func (r Retention) check(field string) error {
	if r.Age < 0 || r.Bytes < 0 || r.Unread > DropUnread {
		return fmt.Errorf("embedded: Options.%s is %+v: the limits must not be below 0, the policy must be known", field, r)
	}

	return nil
}

// retention returns what is kept of a topic.
func (o Options) retention(topic string) Retention {
	if r, ok := o.Topics[topic]; ok {
		return r
	}

	return o.Retention
}

// prunes reports whether anything is ever deleted.
func (o Options) prunes() bool {
	if o.Retention.limited() {
		return true
	}

	for _, r := range o.Topics {
		if r.limited() {
			return true
		}
	}

	return false
}

func (r Retention) limited() bool { return r.Age > 0 || r.Bytes > 0 }

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}

	return v
}
