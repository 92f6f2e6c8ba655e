package consumertest

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// member is one membership. The lock of its broker guards it.
type member struct {
	b   *Broker
	g   *group
	sub consumer.Subscription
	// own are the leases of a broadcasting member.
	own      []consumer.Lease
	assigned consumer.Assignment
	// changed is closed, and replaced, when the assignment changes, the membership ends or the broker is closed.
	changed chan struct{}
	// gone is why the membership has ended; nil while it lasts.
	gone error
}

var _ consumer.Member = (*member)(nil)

func (m *member) wake() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// assign makes leases the assignment when they differ from it, or when it is the first.
func (m *member) assign(leases []consumer.Lease) {
	if m.assigned.Generation > 0 && slices.Equal(leases, m.assigned.Leases) {
		return
	}

	m.assigned = consumer.Assignment{Generation: m.assigned.Generation + 1, Leases: leases}
	m.wake()
}

// call returns what the ledger says of every call of this member.
func (m *member) call(op Op, q pipeline.Queue) Call {
	return Call{Op: op, Group: m.sub.Group, Instance: m.sub.Instance, Queue: q}
}

// do is [Broker.do] for a member: it fails when the membership has ended.
func (m *member) do(ctx context.Context, call Call, act func(*Call) error) error {
	return m.b.do(ctx, call, func(call *Call) error {
		if m.gone != nil {
			return m.gone
		}

		return act(call)
	})
}

// Assigned implements consumer.Membership.
func (m *member) Assigned(ctx context.Context, known uint64) (consumer.Assignment, error) {
	for {
		var (
			now     consumer.Assignment
			changed <-chan struct{}
		)

		err := m.do(ctx, m.call(OpAssigned, pipeline.Queue{}), func(*Call) error {
			now, changed = m.assigned, m.changed

			return nil
		})
		if err != nil {
			return consumer.Assignment{}, err
		}

		if now.Generation > known {
			now.Leases = slices.Clone(now.Leases)

			return now, nil
		}

		select {
		case <-changed:
		case <-ctx.Done():
			return consumer.Assignment{}, ctx.Err()
		}
	}
}

// Release implements consumer.Membership. A lease that has ended already is no error.
func (m *member) Release(ctx context.Context, l consumer.Lease) error {
	call := m.call(OpRelease, l.Queue)
	call.Epoch = l.Epoch

	return m.do(ctx, call, func(*Call) error {
		if h := m.g.held[l.Queue]; h != nil && h.member == m && h.epoch == l.Epoch && h.taken {
			delete(m.g.held, l.Queue)
			m.g.rebalance()
		}

		return nil
	})
}

// Leave implements consumer.Membership.
func (m *member) Leave(ctx context.Context) error {
	return m.do(ctx, m.call(OpLeave, pipeline.Queue{}), func(*Call) error {
		m.g.drop(m, consumer.ErrLeft)

		return nil
	})
}

// owns fails unless the lease lasts. With asked it also lasts while the queue is taken away and not released yet.
func (m *member) owns(l consumer.Lease, asked bool) error {
	if slices.Contains(m.own, l) {
		return nil
	}

	h := m.g.held[l.Queue]
	if h == nil || h.member != m || h.epoch != l.Epoch || h.taken && !asked {
		return fmt.Errorf("consumertest: %s in epoch %d: %w", l.Queue, l.Epoch, consumer.ErrNotOwner)
	}

	return nil
}
