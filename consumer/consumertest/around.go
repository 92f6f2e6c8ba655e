package consumertest

import (
	"context"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Around stands around the calls of members, to watch them or to make mistakes in them. Each function is called in place of
// the call that it is named after, and is given that call, to make it, once or twice or never, and to return what it likes.
// Those that are nil leave their calls alone. They are called by many goroutines, as members are.
type Around struct {
	// Join is called before a process becomes a member.
	Join func(call func() (consumer.Member, error)) (consumer.Member, error)
	Pull func(l consumer.Lease, call func() (consumer.Batch, error)) (consumer.Batch, error)
	// Stored is called for a queue's checkpoint.
	Stored func(q pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error)
	Commit func(l consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error
	// SendBack and DeadLetter may give back another message than they are asked to.
	SendBack   func(m *pipeline.Message, delay time.Duration, call func(*pipeline.Message) error) error
	DeadLetter func(m *pipeline.Message, c consumer.Cause, call func(*pipeline.Message) error) error
	// Release may use the member before a queue is given up.
	Release func(ctx context.Context, m consumer.Member, l consumer.Lease) error
}

// Broker returns a broker whose members are watched.
func (a *Around) Broker(b consumer.Broker) consumer.Broker { return &aroundBroker{Broker: b, a: a} }

// Member returns a member that is watched.
func (a *Around) Member(m consumer.Member) consumer.Member { return &aroundMember{Member: m, a: a} }

type aroundBroker struct {
	consumer.Broker

	a *Around
}

func (b *aroundBroker) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	call := func() (consumer.Member, error) { return b.Broker.Join(ctx, s) }

	join := b.a.Join
	if join == nil {
		join = func(call func() (consumer.Member, error)) (consumer.Member, error) { return call() }
	}

	m, err := join(call)
	if err != nil {
		return nil, err
	}

	return b.a.Member(m), nil
}

type aroundMember struct {
	consumer.Member

	a *Around
}

var _ consumer.Member = (*aroundMember)(nil)

func (m *aroundMember) Pull(
	ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, error) {
	if m.a.Pull == nil {
		return m.Member.Pull(ctx, l, from, limit)
	}

	return m.a.Pull(l, func() (consumer.Batch, error) { return m.Member.Pull(ctx, l, from, limit) })
}

func (m *aroundMember) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	if m.a.Stored == nil {
		return m.Member.Stored(ctx, q)
	}

	return m.a.Stored(q, func() (consumer.Checkpoint, error) { return m.Member.Stored(ctx, q) })
}

func (m *aroundMember) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	if m.a.Commit == nil {
		return m.Member.Commit(ctx, l, c)
	}

	return m.a.Commit(l, c, func(c consumer.Checkpoint) error { return m.Member.Commit(ctx, l, c) })
}

func (m *aroundMember) SendBack(ctx context.Context, back *pipeline.Message, delay time.Duration) error {
	if m.a.SendBack == nil {
		return m.Member.SendBack(ctx, back, delay)
	}

	return m.a.SendBack(back, delay, func(back *pipeline.Message) error { return m.Member.SendBack(ctx, back, delay) })
}

func (m *aroundMember) DeadLetter(ctx context.Context, dead *pipeline.Message, c consumer.Cause) error {
	if m.a.DeadLetter == nil {
		return m.Member.DeadLetter(ctx, dead, c)
	}

	return m.a.DeadLetter(dead, c, func(dead *pipeline.Message) error { return m.Member.DeadLetter(ctx, dead, c) })
}

func (m *aroundMember) Release(ctx context.Context, l consumer.Lease) error {
	if m.a.Release == nil {
		return m.Member.Release(ctx, l)
	}

	return m.a.Release(ctx, m.Member, l)
}
