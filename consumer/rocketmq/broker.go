package rocketmq

import (
	"context"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// Broker is a RocketMQ cluster as its consumers see it. It is safe for concurrent use. Whoever opened it closes it.
type Broker struct {
	options Options
	client  *remoting.Client // for the name servers; each member has one of its own for the brokers
	routes  *routes.Table
	decoder *record.Decoder

	mu      sync.Mutex
	closed  bool
	members map[*member]struct{}
}

var _ consumer.Broker = (*Broker)(nil)

// Open returns a broker without asking anything of the cluster yet: that it cannot be reached is told by Join. It fails
// when the options make no sense.
func Open(o Options) (*Broker, error) {
	o, err := o.orDefaults()
	if err != nil {
		return nil, err
	}

	client := remoting.NewClient(o.remoting())

	table, err := routes.New(routes.Options{
		Client: client, NameServers: o.NameServers, Namespace: routes.Namespace(o.Namespace), Log: o.Log,
	})
	if err != nil {
		client.Close()

		return nil, err //nolint:wrapcheck // it names the option
	}

	decoder, err := record.NewDecoder(record.Limits{})
	if err != nil {
		client.Close()

		return nil, err //nolint:wrapcheck // of the same family
	}

	return &Broker{options: o, client: client, routes: table, decoder: decoder, members: map[*member]struct{}{}}, nil
}

// Close ends the memberships that are left, without the courtesies of [consumer.Membership].Leave, and waits for all
// goroutines of the broker. Calls fail with [consumer.ErrClosed] from then on. Repeated calls do nothing.
func (b *Broker) Close() error {
	b.mu.Lock()
	b.closed = true

	left := make([]*member, 0, len(b.members))
	for m := range b.members {
		left = append(left, m)
	}
	b.mu.Unlock()

	for _, m := range left {
		m.end(consumer.ErrClosed)
	}

	b.client.Close()

	return nil
}

// add makes m one of the broker's members, unless the broker is closed.
func (b *Broker) add(m *member) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.closed {
		return consumer.ErrClosed
	}

	b.members[m] = struct{}{}

	return nil
}

func (b *Broker) remove(m *member) {
	b.mu.Lock()
	defer b.mu.Unlock()

	delete(b.members, m)
}

// Join makes the caller a member of a group; see [consumer.Broker]. It returns when the brokers of the topics know the
// member. Its errors are a [*consumer.UnknownTopicError], [ErrUnreachable], [ErrNoPermission], [ErrUnknownGroup],
// [ErrBadFilter], and words for a subscription that makes no sense.
func (b *Broker) Join(ctx context.Context, s consumer.Subscription) (consumer.Member, error) {
	m, err := newMember(b, s)
	if err != nil {
		return nil, err
	}

	if err := b.add(m); err != nil {
		m.client.Close()

		return nil, err
	}

	if err := m.begin(ctx); err != nil {
		m.end(consumer.ErrLeft)

		return nil, err
	}

	return m, nil
}
