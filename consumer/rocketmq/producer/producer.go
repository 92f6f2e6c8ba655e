package producer

import (
	"context"
	"sync"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// Producer sends messages. It is safe for concurrent use. Whoever made it closes it.
type Producer struct {
	options    Options
	client     *remoting.Client
	routes     *routes.Table
	compressor *record.Compressor
	ids        *ids
	chooser    *chooser

	stop    context.CancelFunc
	running sync.WaitGroup
}

var _ consumer.Publisher = (*Producer)(nil)

// New returns a producer, which connects when it first sends. The error names everything that is wrong with the options.
func New(o Options) (*Producer, error) {
	o, err := o.orDefaults()
	if err != nil {
		return nil, err
	}

	compressor, err := record.NewCompressor(o.Compression)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says all
	}

	client := remoting.NewClient(o.Remoting)

	table, err := routes.New(routes.Options{
		Client: client, NameServers: o.NameServers, Namespace: o.Namespace, Log: o.Remoting.Log,
	})
	if err != nil {
		client.Close()

		return nil, err //nolint:wrapcheck // it says all
	}

	ctx, stop := context.WithCancel(context.Background())
	p := &Producer{
		options: o, client: client, routes: table, compressor: compressor, ids: newIDs(), chooser: newChooser(), stop: stop,
	}
	p.running.Go(func() { table.Keep(ctx, o.RoutesEvery) })

	return p, nil
}

// Close ends the connections; what is being sent fails with [consumer.ErrClosed], as does what comes after. It waits for the
// producer's goroutines. Repeated calls do nothing. It never fails.
func (p *Producer) Close() error {
	p.stop()
	p.client.Close()
	p.running.Wait()

	return nil
}

// Send stores a message in a topic. Nil means that a broker has it (see Sent.Durable).
//
// The error is [ErrInvalid] or [ErrTooLarge] for what no attempt will change, a [*consumer.UnknownTopicError],
// [ErrNotWritable], [routes.ErrNoPermission], [routes.ErrUnreachable], [consumer.ErrClosed], the context's, or a broker's own
// words. After any but the first two the message may have been stored.
func (p *Producer) Send(ctx context.Context, topic string, m Message) (Sent, error) {
	if err := p.check(topic); err != nil {
		return Sent{}, err
	}

	l, err := p.letter(&m)
	if err != nil {
		return Sent{}, p.about(topic, err)
	}

	sent, err := p.deliver(ctx, topic, []*letter{l})
	if err != nil {
		return Sent{}, err
	}

	return sent[0], nil
}

// Publish implements [consumer.Publisher]. A message that was stored less safely than its broker promises counts as published.
func (p *Producer) Publish(ctx context.Context, topic string, messages []*pipeline.Message) error {
	all := make([]Message, len(messages))
	for i, m := range messages {
		all[i] = Message{ID: m.ID, Key: m.Key, Tag: m.Tag, Body: m.Body, Props: m.Props, Born: m.Born}
	}

	_, err := p.SendBatch(ctx, topic, all)

	return err
}
