package consumertest

import (
	"slices"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Op names a call to a broker.
type Op string

// The calls.
const (
	OpPublish    Op = "publish"
	OpJoin       Op = "join"
	OpAssigned   Op = "assigned"
	OpRelease    Op = "release"
	OpLeave      Op = "leave"
	OpPull       Op = "pull"
	OpFind       Op = "find"
	OpStored     Op = "stored"
	OpCommit     Op = "commit"
	OpSendBack   Op = "send back"
	OpDeadLetter Op = "dead letter"
	// OpDeliver is not a call of its own: a pull writes one for each message that it hands out.
	OpDeliver Op = "deliver"
)

// Call is a line of the ledger: a call, who made it, and what came of it. Fields that an Op does not have are zero.
type Call struct {
	At time.Time
	Op Op
	// Group and Instance name the member; a publisher has none.
	Group, Instance string
	// Queue is the queue; of a publish the topic only.
	Queue pipeline.Queue
	Epoch uint64
	// Offset is where a pull started, what Find answered, Next of a commit, or the offset of the message.
	Offset pipeline.Offset
	// ID and Delivery are those of the stored message.
	ID       string
	Delivery int
	// Checkpoint is what was committed, or what Stored answered.
	Checkpoint consumer.Checkpoint
	Delay      time.Duration
	Cause      consumer.Cause
	// Repeated: the message had been returned before, so that nothing was left to do.
	Repeated bool
	// Applied: the call took effect, even if Err says otherwise because its answer got lost.
	Applied bool
	// Err is the broker's answer; a caller that did not wait for it got an error of its context's.
	Err error
}

// of notes which message the call is about.
func (c *Call) of(m *pipeline.Message) {
	c.ID, c.Delivery, c.Offset = m.ID, m.Origin.Delivery, m.Origin.Offset
}

// Calls returns the ledger's lines of some kinds in the order of their effects; of every kind when none is named.
func (b *Broker) Calls(ops ...Op) []Call {
	b.mu.Lock()
	defer b.mu.Unlock()

	var calls []Call

	for _, call := range b.calls {
		if len(ops) == 0 || slices.Contains(ops, call.Op) {
			calls = append(calls, call)
		}
	}

	return calls
}

// Record describes a stored message.
type Record struct {
	Queue    pipeline.Queue
	Offset   pipeline.Offset
	ID, Key  string
	Delivery int
	// Returned: the group in question sent it back or dead-lettered it.
	Returned bool
}

func (g *group) describe(r *record) Record {
	m := &r.message

	return Record{
		Queue: m.Origin.Queue, Offset: m.Origin.Offset, ID: m.ID, Key: m.Key, Delivery: m.Origin.Delivery,
		Returned: consumer.ContainsRun(g.returned[m.Origin.Queue], m.Origin.Offset),
	}
}

// Messages returns copies of everything that was ever stored in a topic, the pruned too, queue by queue.
func (b *Broker) Messages(topic string) []*pipeline.Message {
	b.mu.Lock()
	defer b.mu.Unlock()

	var all []*pipeline.Message

	for _, log := range b.topics[topic] {
		for i := range log.records {
			m := copyOf(&log.records[i].message)
			all = append(all, &m)
		}
	}

	return all
}

// Standing is how far a group is in a queue.
type Standing struct {
	Queue pipeline.Queue
	// First is the lowest offset that is still there, End the offset of the next message.
	First, End pipeline.Offset
	// Checkpoint is what the group committed, without what it returned; Stored is false when it never did.
	Checkpoint consumer.Checkpoint
	Stored     bool
	// Returned are the offsets that the group sent back or dead-lettered.
	Returned []consumer.Run
}

// Standings returns how far a group is in each queue of a topic.
func (b *Broker) Standings(group, topic string) []Standing { return b.StandingsOf(group, "", topic) }

// StandingsOf is Standings for one broadcasting member of a group, whose offsets are its own; no instance means the group.
func (b *Broker) StandingsOf(group, instance, topic string) []Standing {
	b.mu.Lock()
	defer b.mu.Unlock()

	g := b.group(group)
	standings := make([]Standing, len(b.topics[topic]))

	for i, log := range b.topics[topic] {
		c, ok := g.stored[instance][log.queue]
		standings[i] = Standing{
			Queue: log.queue, First: log.first, End: log.end,
			Checkpoint: clone(c), Stored: ok, Returned: slices.Clone(g.returned[log.queue]),
		}
	}

	return standings
}

// Delayed returns how many messages that a group sent back are not due yet.
func (b *Broker) Delayed(group string) int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return len(b.group(group).delayed)
}

// Members returns the names of a group's members, sorted.
func (b *Broker) Members(group string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()

	names := make([]string, 0, len(b.group(group).members))
	for name := range b.group(group).members {
		names = append(names, name)
	}

	slices.Sort(names)

	return names
}
