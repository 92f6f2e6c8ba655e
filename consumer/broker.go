package consumer

import (
	"context"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Broker is where a job's messages come from. Implementations are safe for concurrent use; every call blocks until it is
// done, fails, or its context ends. A Broker is closed by whoever opened it, after its members have left.
type Broker interface {
	// Join makes the caller a member of the subscription's group. It fails with an [*UnknownTopicError] when a topic does
	// not exist. The membership lasts until [Membership.Leave]; ctx bounds the call only.
	Join(ctx context.Context, s Subscription) (Member, error)
}

// Publisher stores messages in topics.
type Publisher interface {
	// Publish appends messages to a topic. Messages with the same non-empty key go to the same queue, in order. It
	// returns nil only when all of them are durable by the broker's standard. On an error any part of them may have been
	// stored. Only Key, Tag, Body, Props, ID and Born are used; an empty ID is replaced by one of the broker's (in the
	// stored record, not in the argument) and a zero Born by the present time. The messages are not kept.
	Publish(ctx context.Context, topic string, messages []*pipeline.Message) error
}

// Subscription is what a member wants.
type Subscription struct {
	// Group is the consumer group; not empty.
	Group string
	// Topics are the topics to read; at least one.
	Topics []string
	// Broadcast gives this member every queue of the topics, with offsets of its own, kept under Group and Instance.
	Broadcast bool
	// Instance names this member among the group's. Empty means a name that the broker makes up; a broadcasting member
	// must set it, since its offsets are found again by it.
	Instance string
}

// Member is one membership of a group: it owns queues for a while, pulls them, and answers for their offsets.
// It is safe for concurrent use.
type Member interface {
	Membership
	Puller
	Offsets
	Returner
}

// Membership tells which queues a member owns.
type Membership interface {
	// Assigned returns the present assignment as soon as its generation is above known, and blocks until then; known is 0
	// for the first call. The group's own retry topic is among the queues. A failing look-up of the membership
	// never shows up as an empty assignment.
	Assigned(ctx context.Context, known uint64) (Assignment, error)
	// Release gives up a queue that an assignment has taken away, when its work has ended and its offsets are committed.
	// Where a broker can hold a queue back it gives it to the next owner only then (or when it loses patience).
	Release(ctx context.Context, l Lease) error
	// Leave ends the membership and releases everything. Calls after it fail with ErrLeft.
	Leave(ctx context.Context) error
}

// Lease is the ownership of one queue. A queue that is taken away and given back has a new epoch, also in one step.
type Lease struct {
	Queue pipeline.Queue
	Epoch uint64
	// Reset says that somebody has set the group's offset, and that the queue begins again for that: what is stored is meant,
	// also where it is below what was committed before.
	Reset bool
}

// Assignment is the set of queues that a member owns.
type Assignment struct {
	// Generation grows with every change of the assignment; above 0.
	Generation uint64
	// Leases are the owned queues, sorted by topic, broker and id.
	Leases []Lease
	// Warning says in words what is wrong with the group as a whole, such as members that subscribe differently, and how to mend
	// it. Work goes on in spite of it. Empty when nothing is known to be wrong.
	Warning string
}

// Limit bounds one pull.
type Limit struct {
	// Messages is the most messages to return; at least 1.
	Messages int
	// Bytes is the most that they may sum up to, by Message.Size; at least one message is returned whatever its size.
	Bytes int64
}

// Batch is the answer to a pull.
type Batch struct {
	// Messages are in the order of their offsets, which may have gaps. They and their bodies belong to the caller.
	Messages []*pipeline.Message
	// Next is the offset to pull from next; it is above the last message's offset, and moves on also when nothing is
	// returned because everything was filtered.
	Next pipeline.Offset
	// End is the offset that the next message published to the queue will get, as far as known at the time of the answer.
	End pipeline.Offset
}

// Puller reads queues.
type Puller interface {
	// Pull returns messages at from or above. When there are none it waits for new ones, without polling, for as long as
	// the broker holds such a call (then the batch is empty) or until ctx ends (then the error is ctx's). It fails with an
	// [*OutOfRangeError] when from is outside of what the queue holds, with a [*DamagedError] when the record at from
	// cannot be read (records before a damaged one are returned first), and with [ErrNotOwner] when the lease has ended.
	Pull(ctx context.Context, l Lease, from pipeline.Offset, limit Limit) (Batch, error)
	// Find returns the offset that a start position means in a queue now. It never makes one up: what cannot be found
	// out is an error.
	Find(ctx context.Context, q pipeline.Queue, at pipeline.Start) (pipeline.Offset, error)
}

// Offsets stores how far a group is.
type Offsets interface {
	// Stored returns the checkpoint of a queue, or [ErrNoCheckpoint] when the group never stored one. Any other error
	// means "unknown".
	Stored(ctx context.Context, q pipeline.Queue) (Checkpoint, error)
	// Commit stores a checkpoint; nil means that it is durable. It fails with [ErrNotOwner] when the lease has ended and
	// then changes nothing.
	Commit(ctx context.Context, l Lease, c Checkpoint) error
}

// Returner takes messages off the member's hands. Both calls address the record at the message's origin, not the bytes
// of the argument, so what a stage did to the message is not stored. Repeating a call that succeeded (for one group and
// origin) changes nothing.
type Returner interface {
	// SendBack makes the group get the message again, with Origin.Delivery one higher, after delay. Nil means that the
	// broker owns the copy and will deliver it, also over restarts.
	SendBack(ctx context.Context, m *pipeline.Message, delay time.Duration) error
	// DeadLetter parks the message with its cause.
	DeadLetter(ctx context.Context, m *pipeline.Message, c Cause) error
}

// Checkpoint is how far a group is in one queue.
type Checkpoint struct {
	// Next is the commit watermark: everything below it is finished; the next offset to read.
	Next pipeline.Offset
	// Done are the finished offsets above Next, as sorted runs that neither touch nor overlap.
	Done []Run
}

// Run is the half-open interval of offsets From <= o < To.
type Run struct {
	From, To pipeline.Offset
}

// Len returns the number of offsets in the run.
func (r Run) Len() int64 { return int64(r.To - r.From) }
