package consumertest

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// ErrCrashed is what every call of a member fails with after [Broker.Crash].
var ErrCrashed = errors.New("consumertest: the member's process was killed")

// errNoHolder is returned when an upheaval is asked for a queue that nobody owns.
var errNoHolder = errors.New("consumertest: nobody owns the queue")

// Crash ends a membership as the death of its process does: nothing is committed, nothing is released in order, and no
// call of the member reaches the broker any more. Nothing happens when there is no such member.
func (b *Broker) Crash(group, instance string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if m := b.group(group).members[instance]; m != nil {
		m.g.drop(m, ErrCrashed)
	}
}

// Reassign takes a queue from its owner. It is given again, with a new epoch and to whom it belongs by then, when the
// owner has released it or the broker's patience is over. At once means that the old lease ends in the same moment in
// which the same owner gets the new one.
func (b *Broker) Reassign(group string, q pipeline.Queue, atOnce bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	g := b.group(group)

	if g.held[q] == nil {
		return fmt.Errorf("%w: %s", errNoHolder, q)
	}

	if atOnce {
		delete(g.held, q)
	} else {
		g.takeAway(q)
	}

	g.rebalance()

	return nil
}

// Trim deletes the records of a queue below an offset, as a broker does with old ones.
func (b *Broker) Trim(q pipeline.Queue, first pipeline.Offset) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.prune(q, first)
}

func (b *Broker) prune(q pipeline.Queue, first pipeline.Offset) error {
	log, err := b.log(q)
	if err != nil {
		return err
	}

	log.first = max(log.first, min(first, log.end))

	return nil
}

// Damage makes the record at an offset unreadable for the reason err; nil repairs it.
func (b *Broker) Damage(q pipeline.Queue, o pipeline.Offset, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	log, unknown := b.log(q)
	if unknown != nil {
		return unknown
	}

	r := log.find(o)
	if r == nil {
		return fmt.Errorf("consumertest: %s holds no record at offset %d", q, o)
	}

	r.damage = err

	return nil
}

// Forget makes the broker come back empty: its topics exist, their queues hold nothing and start at offset 0, no group has
// an offset, nothing is on its way back. Memberships and leases last.
func (b *Broker) Forget() {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, logs := range b.topics {
		for _, log := range logs {
			log.records, log.first = nil, 0
			log.moveEnd(0)
		}
	}

	for _, g := range b.groups {
		clear(g.stored)
		clear(g.returned)

		for timer := range g.delayed {
			timer.Stop()
		}

		clear(g.delayed)
	}
}

// RollBack replaces the checkpoint of a group in a queue by an older one, as a broker does that comes back with an old
// table of offsets.
func (b *Broker) RollBack(group string, q pipeline.Queue, c consumer.Checkpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()

	g := b.group(group)
	if g.stored[""] == nil {
		g.stored[""] = make(map[pipeline.Queue]consumer.Checkpoint)
	}

	g.stored[""][q] = clone(c)
}
