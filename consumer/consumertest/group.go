package consumertest

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// group is a consumer group. The lock of its broker guards it.
type group struct {
	b       *Broker
	name    string
	members map[string]*member
	// held says who owns each queue; a broadcasting member's queues are not in it.
	held map[pipeline.Queue]*holding
	// stored are the group's checkpoints; those of broadcasting members are under their names, the others under "".
	stored map[string]map[pipeline.Queue]consumer.Checkpoint
	// returned are the offsets whose messages the group sent back or dead-lettered: they are finished, whether or not a
	// checkpoint says so.
	returned map[pipeline.Queue][]consumer.Run
	// delayed are the timers of redeliveries that are not due yet.
	delayed map[*time.Timer]struct{}
}

// holding is the ownership of a queue.
type holding struct {
	member *member
	epoch  uint64
	// taken: the queue has been taken away from the member, which may still commit until it releases it.
	taken bool
}

// group returns the group of a name and makes it, with its retry topic, at the first call.
func (b *Broker) group(name string) *group {
	g := b.groups[name]
	if g == nil {
		g = &group{
			b:        b,
			name:     name,
			members:  make(map[string]*member),
			held:     make(map[pipeline.Queue]*holding),
			stored:   make(map[string]map[pipeline.Queue]consumer.Checkpoint),
			returned: make(map[pipeline.Queue][]consumer.Run),
			delayed:  make(map[*time.Timer]struct{}),
		}
		b.groups[name] = g
		b.create(consumer.RetryTopic(name), b.cfg.RetryQueues)
	}

	return g
}

func (g *group) join(s consumer.Subscription) *member {
	m := &member{b: g.b, g: g, sub: s, changed: make(chan struct{})}
	g.members[s.Instance] = m

	if s.Broadcast {
		for _, topic := range s.Topics {
			for _, q := range g.b.topics[topic] {
				g.b.epoch++
				m.own = append(m.own, consumer.Lease{Queue: q.queue, Epoch: g.b.epoch})
			}
		}
	}

	g.rebalance()

	return m
}

// drop ends a membership with the reason that its calls fail with from then on.
func (g *group) drop(m *member, reason error) {
	if m.gone != nil {
		return
	}

	m.gone = reason
	m.wake()
	delete(g.members, m.sub.Instance)

	for q, h := range g.held {
		if h.member == m {
			delete(g.held, q)
		}
	}

	g.rebalance()
}

// rebalance takes away the queues that belong to somebody else now, gives the free ones to their owners, and tells every
// member whose assignment has changed.
func (g *group) rebalance() {
	owners := g.owners()

	for q, h := range g.held {
		if h.member != owners[q] {
			g.takeAway(q)
		}
	}

	for _, q := range slices.SortedFunc(maps.Keys(owners), consumer.CompareQueues) {
		if g.held[q] == nil {
			g.b.epoch++
			g.held[q] = &holding{member: owners[q], epoch: g.b.epoch}
		}
	}

	for _, m := range g.members {
		m.assign(g.leases(m))
	}
}

// owners shares the queues of each topic among the members that read it.
func (g *group) owners() map[pipeline.Queue]*member {
	readers := make(map[string][]string)

	for id, m := range g.members {
		if !m.sub.Broadcast {
			for _, topic := range append([]string{consumer.RetryTopic(g.name)}, m.sub.Topics...) {
				readers[topic] = append(readers[topic], id)
			}
		}
	}

	owners := make(map[pipeline.Queue]*member)

	for topic, ids := range readers {
		queues := make([]pipeline.Queue, len(g.b.topics[topic]))
		for i, log := range g.b.topics[topic] {
			queues[i] = log.queue
		}

		for _, id := range ids {
			for _, q := range consumer.Allocate(queues, ids, id) {
				owners[q] = g.members[id]
			}
		}
	}

	return owners
}

// takeAway asks the owner to release a queue. After the broker's patience it is taken from it.
func (g *group) takeAway(q pipeline.Queue) {
	h := g.held[q]
	if h.taken {
		return
	}

	h.taken = true
	time.AfterFunc(g.b.cfg.Patience, func() {
		g.b.mu.Lock()
		defer g.b.mu.Unlock()

		if g.held[q] == h {
			delete(g.held, q)
			g.rebalance()
		}
	})
}

// leases returns what a member owns and was not asked to release.
func (g *group) leases(m *member) []consumer.Lease {
	leases := slices.Clone(m.own)

	for q, h := range g.held {
		if h.member == m && !h.taken {
			leases = append(leases, consumer.Lease{Queue: q, Epoch: h.epoch})
		}
	}

	slices.SortFunc(leases, func(a, b consumer.Lease) int { return consumer.CompareQueues(a.Queue, b.Queue) })

	return leases
}

// offsets returns the checkpoints that count for a member.
func (g *group) offsets(m *member) map[pipeline.Queue]consumer.Checkpoint {
	owner := ""
	if m.sub.Broadcast {
		owner = m.sub.Instance
	}

	if g.stored[owner] == nil {
		g.stored[owner] = make(map[pipeline.Queue]consumer.Checkpoint)
	}

	return g.stored[owner]
}
