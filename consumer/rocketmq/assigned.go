package rocketmq

import (
	"context"
	"slices"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Assigned waits for an assignment above known; see [consumer.Membership].
func (m *member) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	for {
		m.mu.Lock()
		cause, changed := m.cause, m.changed
		a := consumer.Assignment{Generation: m.generation}

		if a.Generation > known {
			a.Leases, a.Warning = m.owned(), m.warning
		}
		m.mu.Unlock()

		switch {
		case cause != nil:
			return consumer.Assignment{}, cause
		case a.Generation > known:
			return a, nil
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return consumer.Assignment{}, ctx.Err()
		}
	}
}

// owned returns the present leases, sorted. member.mu is held.
func (m *member) owned() []consumer.Lease {
	leases := make([]consumer.Lease, 0, len(m.leases))
	for _, l := range m.leases {
		leases = append(leases, l.Lease)
	}

	slices.SortFunc(leases, func(a, b consumer.Lease) int { return consumer.CompareQueues(a.Queue, b.Queue) })

	return leases
}

// Release gives a queue up; see [consumer.Membership]. Where queues are locked it unlocks this one, so that its next owner
// may begin; elsewhere the lease ended when the queue was taken away, and nothing is left to do.
func (m *member) Release(ctx context.Context, l consumer.Lease) error {
	m.mu.Lock()
	cause, held := m.cause, m.leaving[l.Queue]

	if cause != nil || held == nil || held.Lease != l {
		m.mu.Unlock()

		return cause
	}

	delete(m.leaving, l.Queue)
	m.mu.Unlock()

	held.end(consumer.ErrNotOwner)
	nudge(m.look)

	return m.unlock(ctx, []pipeline.Queue{l.Queue})
}

// assign makes the shares of some topics the assignment, and reports whether that changed it. The queues of other topics
// stay as they are.
func (m *member) assign(shares map[string][]pipeline.Queue) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.cause != nil {
		return false
	}

	different := m.generation == 0

	for q, l := range m.leases {
		if share, looked := shares[q.Topic]; looked && !slices.Contains(share, q) {
			m.take(l)

			different = true
		}
	}

	for _, share := range shares {
		for _, q := range share {
			if m.leases[q] == nil {
				m.give(q)

				different = true
			}
		}
	}

	if different {
		m.bump()
	}

	return different
}

// give makes a new lease. Its epoch is above that of any before, also of another process unless its clock is ahead by more
// than the time between. member.mu is held.
func (m *member) give(q pipeline.Queue) {
	m.epoch = max(m.epoch+1, uint64(time.Now().UnixMilli()))
	m.leases[q] = newLease(consumer.Lease{Queue: q, Epoch: m.epoch})
	m.leases[q].lockedAt = time.Now() // where it is locked, that was just now
}

// take ends a lease. Where its queue is locked its work may be settled first. member.mu is held.
func (m *member) take(l *lease) {
	delete(m.leases, l.Queue)

	if m.orderly {
		l.doomed = time.Now().Add(patience)
		m.leaving[l.Queue] = l
	} else {
		l.end(consumer.ErrNotOwner)
	}
}

// bump makes a new generation of the assignment. member.mu is held.
func (m *member) bump() {
	m.generation++
	close(m.changed)
	m.changed = make(chan struct{})
}

// renew takes a queue away and gives it back in one step, so that whoever reads it begins again at what a reset has stored.
func (m *member) renew(l *lease) {
	m.mu.Lock()
	defer m.mu.Unlock()

	l.end(consumer.ErrReset)

	if m.leases[l.Queue] == l && m.cause == nil {
		m.give(l.Queue)
		m.leases[l.Queue].Reset = true
		m.leases[l.Queue].lockedAt = l.lockedAt
		m.bump()
	}
}
