package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/millrace/millrace/consumer"
)

// member is one membership. Everything that changes in it is guarded by its group's mu.
type member struct {
	group  *group
	name   string
	topics []*topic
	// broadcast says that the group is this member's alone.
	broadcast bool

	generation uint64
	// changed is closed when the generation grows, and when the member leaves.
	changed chan struct{}
	left    bool
}

var _ consumer.Member = (*member)(nil)

// Join makes the caller a member of a group; see [consumer.Broker]. A group is made by its first member, with its retry
// topic. The errors are a [consumer.UnknownTopicError], [ErrBadName], or [ErrTwice] for an instance that is a member now.
func (b *Broker) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	if err := checkSubscription(s); err != nil {
		return nil, err
	}

	if err := b.enter(); err != nil {
		return nil, err
	}
	defer b.leave()

	m := &member{name: s.Instance, broadcast: s.Broadcast, changed: make(chan struct{})}

	for _, name := range slices.Compact(slices.Sorted(slices.Values(s.Topics))) {
		t, err := b.topic(name)
		if err != nil {
			return nil, err
		}

		m.topics = append(m.topics, t)
	}

	if m.name == "" {
		m.name = "member-" + strconv.FormatUint(b.serial(), 16)
	}

	name := s.Group
	if s.Broadcast {
		name = s.Group + "/" + s.Instance
	} else {
		retry, err := b.ensureTopic(ctx, consumer.RetryTopic(s.Group), 1)
		if err != nil {
			return nil, err
		}

		if !slices.Contains(m.topics, retry) {
			m.topics = append(m.topics, retry)
		}
	}

	g, err := b.ensureGroup(ctx, name)
	if err != nil {
		return nil, err
	}

	if err := g.join(m); err != nil {
		return nil, err
	}

	return m, nil
}

func checkSubscription(s consumer.Subscription) error {
	err := checkName("group", s.Group)

	if len(s.Topics) == 0 {
		err = errors.Join(err, fmt.Errorf("embedded: joining %q: no topics", s.Group))
	}

	if s.Instance != "" {
		err = errors.Join(err, checkName("instance", s.Instance))
	} else if s.Broadcast {
		err = errors.Join(err, fmt.Errorf("embedded: joining %q: a broadcasting member needs an instance", s.Group))
	}

	return err
}

// ensureGroup returns a group, after making it when there is none.
func (b *Broker) ensureGroup(ctx context.Context, name string) (*group, error) {
	b.creating.Lock()
	defer b.creating.Unlock()

	b.mu.RLock()
	known, id := b.groups[name], uint32(len(b.groups))
	b.mu.RUnlock()

	if known != nil {
		return known, nil
	}

	tx, err := b.store.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer tx.abort()

	key := nameKey(kindGroup, name)
	if err := tx.set(key, func(e *encoder) ([]byte, error) { return e.single(key, id) }); err != nil {
		return nil, err
	}

	if err := tx.commit(); err != nil {
		return nil, err
	}

	b.mu.Lock()
	defer b.mu.Unlock()

	b.groups[name] = newGroup(b, name, id)

	return b.groups[name], nil
}

func (g *group) join(m *member) error {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.members[m.name] != nil {
		return fmt.Errorf("%w: %q in group %q: give every member an instance of its own", ErrTwice, m.name, g.name)
	}

	m.group = g
	g.members[m.name] = m
	m.bump()
	g.rebalance()

	return nil
}

// bump makes a new generation of the member's assignment. The caller holds the group's mu.
func (m *member) bump() {
	m.generation++
	close(m.changed)
	m.changed = make(chan struct{})
}

// Assigned waits for an assignment above known; see [consumer.Membership].
func (m *member) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	g := m.group

	for {
		guard := g.broker.guard()

		g.mu.Lock()
		left, changed := m.left, m.changed
		a := consumer.Assignment{Generation: m.generation}

		if a.Generation > known {
			a.Leases = g.leasesOf(m)
		}
		g.mu.Unlock()

		switch {
		case left:
			return consumer.Assignment{}, consumer.ErrLeft
		case g.broker.isClosed():
			return consumer.Assignment{}, consumer.ErrClosed
		case a.Generation > known:
			return a, nil
		}

		select {
		case <-changed:
		case <-g.broker.closing:
		case <-guard.failed:
			return consumer.Assignment{}, guard.failure()
		case <-ctx.Done():
			return consumer.Assignment{}, ctx.Err()
		}
	}
}

func (b *Broker) isClosed() bool {
	select {
	case <-b.closing:
		return true
	default:
		return false
	}
}

// Release gives up a queue; see [consumer.Membership]. A lease that has ended, or was never taken away, is [ErrNotOwner]
// or is given up all the same.
func (m *member) Release(ctx context.Context, l consumer.Lease) error {
	if err := ctx.Err(); err != nil {
		return err
	}

	g := m.group

	g.mu.Lock()
	defer g.mu.Unlock()

	if g.stopped {
		return consumer.ErrClosed
	}

	owned, err := g.owned(m, l.Queue, l.Epoch)
	if err != nil {
		return err
	}

	g.end(owned)
	m.bump()
	g.rebalance()

	return nil
}

// Leave ends the membership; see [consumer.Membership].
func (m *member) Leave(context.Context) error {
	g := m.group

	g.mu.Lock()
	defer g.mu.Unlock()

	switch {
	case m.left:
		return consumer.ErrLeft
	case g.stopped:
		return consumer.ErrClosed
	}

	m.left = true
	delete(g.members, m.name)

	for _, l := range g.leases {
		if l.owner == m {
			g.end(l)
		}
	}

	m.bump()
	g.rebalance()

	return nil
}
