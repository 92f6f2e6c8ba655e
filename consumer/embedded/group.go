package embedded

import (
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// group is a consumer group with the members that it has in this process. A broadcasting member is a group of its own,
// named group/instance, which has one member and no retry topic.
type group struct {
	broker *Broker
	name   string
	id     uint32

	mu sync.Mutex
	// members are the present members by instance. Guarded by mu.
	members map[string]*member
	// leases says who owns a queue; a queue that is not here is free. Guarded by mu.
	leases map[pipeline.Queue]*lease
	// stopped is set when the broker closes: no lease is given out any more. Guarded by mu.
	stopped bool
}

// lease is the ownership of a queue: owned, then going (taken away, not released yet), then ended. Only the group's mutex
// protects it, but for ended.
type lease struct {
	queue *queue
	owner *member
	epoch uint64
	// going is set when the queue was taken away; its owner may commit and return messages until he releases it.
	going bool
	// ended is closed when nothing may be pulled any more: with going, and at the end.
	ended chan struct{}
	// patience ends the lease when its owner does not.
	patience *time.Timer
	// start is the lowest offset that was pulled, or -1.
	start pipeline.Offset
}

func newGroup(b *Broker, name string, id uint32) *group {
	return &group{
		broker: b, name: name, id: id,
		members: make(map[string]*member), leases: make(map[pipeline.Queue]*lease),
	}
}

// rebalance gives every queue to the member that should have it: free queues at once, owned ones when their owners have
// let go of them. The caller holds mu.
func (g *group) rebalance() {
	if g.stopped {
		return
	}

	wanted := g.share()
	changed := make(map[*member]bool)

	for _, l := range g.leases {
		if !l.going && l.owner != wanted[l.queue] {
			g.takeAway(l)
			changed[l.owner] = true
		}
	}

	for q, m := range wanted {
		if g.leases[q.name] == nil {
			g.leases[q.name] = &lease{queue: q, owner: m, epoch: g.broker.serial(), ended: make(chan struct{}), start: -1}
			changed[m] = true
		}
	}

	for m := range changed {
		m.bump()
	}
}

// share says who should own what, each topic by the members that read it.
func (g *group) share() map[*queue]*member {
	readers := make(map[*topic][]string)

	for _, m := range g.members {
		for _, t := range m.topics {
			readers[t] = append(readers[t], m.name)
		}
	}

	wanted := make(map[*queue]*member)

	for t, names := range readers {
		for _, name := range names {
			for _, q := range consumer.Allocate(t.names(), names, name) {
				wanted[t.queues[q.ID]] = g.members[name]
			}
		}
	}

	return wanted
}

// takeAway starts the end of a lease.
func (g *group) takeAway(l *lease) {
	l.going = true
	close(l.ended)

	l.patience = time.AfterFunc(g.broker.options.Patience, func() {
		g.mu.Lock()
		defer g.mu.Unlock()

		if g.leases[l.queue.name] == l && !g.stopped {
			g.broker.log.Warn("embedded: a queue was not released in time and goes to its next owner",
				zap.String("group", g.name), zap.Stringer("queue", l.queue.name), zap.String("member", l.owner.name))
			g.end(l)
			g.rebalance()
		}
	})
}

// end makes a queue free. The caller holds mu.
func (g *group) end(l *lease) {
	delete(g.leases, l.queue.name)

	if l.patience != nil {
		l.patience.Stop()
	}

	if !l.going {
		close(l.ended)
	}
}

// owned returns the lease that a member says it has, also when it is going. The caller holds mu.
func (g *group) owned(m *member, q pipeline.Queue, epoch uint64) (*lease, error) {
	if m.left {
		return nil, consumer.ErrLeft
	}

	l := g.leases[q]
	if l == nil || l.owner != m || l.epoch != epoch {
		return nil, consumer.ErrNotOwner
	}

	return l, nil
}

// pulls returns the lease under which a member may pull from an offset.
func (g *group) pulls(m *member, l consumer.Lease, from pipeline.Offset) (*lease, error) {
	g.mu.Lock()
	defer g.mu.Unlock()

	owned, err := g.owned(m, l.Queue, l.Epoch)
	if err != nil {
		return nil, err
	}

	if owned.going {
		return nil, consumer.ErrNotOwner
	}

	if owned.start < 0 || from < owned.start {
		owned.start = from
	}

	return owned, nil
}

// why says why a member's lease has ended.
func (g *group) why(m *member) error {
	if err := g.joined(m); err != nil {
		return err
	}

	return consumer.ErrNotOwner
}

// joined returns ErrLeft for a member that has left.
func (g *group) joined(m *member) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	if m.left {
		return consumer.ErrLeft
	}

	return nil
}

// leasesOf returns what a member owns, sorted. The caller holds mu.
func (g *group) leasesOf(m *member) []consumer.Lease {
	var owned []consumer.Lease

	for _, l := range g.leases {
		if l.owner == m && !l.going {
			owned = append(owned, consumer.Lease{Queue: l.queue.name, Epoch: l.epoch})
		}
	}

	slices.SortFunc(owned, func(a, b consumer.Lease) int { return consumer.CompareQueues(a.Queue, b.Queue) })

	return owned
}

// stop ends the group's timers when the broker closes.
func (g *group) stop() {
	g.mu.Lock()
	defer g.mu.Unlock()

	g.stopped = true

	for _, l := range g.leases {
		if l.patience != nil {
			l.patience.Stop()
		}
	}
}
