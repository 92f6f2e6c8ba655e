package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// counts are what the broker counts while it is open.
type counts struct {
	damaged, pruned atomic.Int64
}

// Description is what a broker holds at one time.
type Description struct {
	// Dir is the directory, Store the id that is in the ids of messages which the broker named.
	Dir, Store string
	// Topics are sorted by name; those of retries and dead letters are among them.
	Topics []TopicInfo
	// Groups are sorted by name. A broadcasting member is a group of its own, named group/instance.
	Groups []GroupInfo
	// Delayed is how many messages wait for their time to be delivered again.
	Delayed int64
	// Damaged is how often a record could not be read, Pruned how many messages retention deleted, since Open.
	Damaged, Pruned int64
}

// TopicInfo is a topic.
type TopicInfo struct {
	Name   string
	Queues []QueueInfo
}

// QueueInfo is a queue: it holds First <= offset < End, in Bytes bytes of records.
type QueueInfo struct {
	Queue      pipeline.Queue
	First, End pipeline.Offset
	Bytes      int64
}

// GroupInfo is a group.
type GroupInfo struct {
	Name string
	// Members are the instances that are members now, sorted.
	Members []string
	// Offsets are the queues in which the group has stored an offset, sorted.
	Offsets []GroupOffset
}

// GroupOffset is how far a group is in a queue.
type GroupOffset struct {
	Queue pipeline.Queue
	// Next is the committed offset, Lag how many messages there are from it on.
	Next pipeline.Offset
	Lag  int64
}

// Topics returns the names of all topics, sorted.
func (b *Broker) Topics() []string {
	b.mu.RLock()
	defer b.mu.RUnlock()

	return slices.Sorted(maps.Keys(b.topics))
}

// Describe returns what the broker holds. It looks at every group and at every delayed message, so it is for people and
// tools, not for a message's path. A checkpoint that cannot be read is an [ErrDamaged].
func (b *Broker) Describe(ctx context.Context) (Description, error) {
	if err := ctx.Err(); err != nil {
		return Description{}, err
	}

	if err := b.enter(); err != nil {
		return Description{}, err
	}
	defer b.leave()

	d := Description{
		Dir: b.options.Dir, Store: b.dir.store, Damaged: b.counts.damaged.Load(), Pruned: b.counts.pruned.Load(),
	}

	queues := b.describeTopics(&d)

	for _, g := range b.everyGroup() {
		info := GroupInfo{Name: g.name, Members: g.memberNames()}

		for _, q := range queues {
			c, err := b.checkpoint(g.id, q)
			if errors.Is(err, consumer.ErrNoCheckpoint) {
				continue
			}

			if err != nil {
				return d, err
			}

			lag := max(q.view().end-max(c.Next, q.view().first), 0)
			info.Offsets = append(info.Offsets, GroupOffset{Queue: q.name, Next: c.Next, Lag: int64(lag)})
		}

		d.Groups = append(d.Groups, info)
	}

	slices.SortFunc(d.Groups, func(x, y GroupInfo) int { return cmp.Compare(x.Name, y.Name) })

	err := b.store.scan([]byte{kindDelayed}, kindEnd(kindDelayed), func([]byte, []byte) (bool, error) {
		d.Delayed++

		return true, nil
	})
	if err != nil {
		return d, fmt.Errorf("%w: %s: counting delayed messages: %w", ErrDamaged, b.options.Dir, err)
	}

	return d, nil
}

// describeTopics adds the topics and returns their queues, sorted.
func (b *Broker) describeTopics(d *Description) []*queue {
	b.mu.RLock()
	defer b.mu.RUnlock()

	var queues []*queue

	for _, name := range slices.Sorted(maps.Keys(b.topics)) {
		info := TopicInfo{Name: name}

		for _, q := range b.topics[name].queues {
			s := q.view()
			info.Queues = append(info.Queues, QueueInfo{Queue: q.name, First: s.first, End: s.end, Bytes: s.endPos - s.firstPos})
		}

		queues = append(queues, b.topics[name].queues...)
		d.Topics = append(d.Topics, info)
	}

	return queues
}

func (g *group) memberNames() []string {
	g.mu.Lock()
	defer g.mu.Unlock()

	return slices.Sorted(maps.Keys(g.members))
}
