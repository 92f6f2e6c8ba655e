package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// Options are the settings of a Client. Only NameServers must be set.
type Options struct {
	// NameServers are the addresses of the name servers, "host:port"; at least one.
	NameServers []string
	// Namespace is what the names of topics and groups are wrapped in on the wire; empty means nothing.
	Namespace routes.Namespace
	// Remoting are the settings of the connections: credentials, TLS, time-outs.
	Remoting remoting.Options
}

// Client asks name servers and brokers. Nothing that it asks makes it a member of a group. It is safe for concurrent use. Whoever
// opened it closes it.
//
// Its errors are a [*consumer.UnknownTopicError], [routes.ErrUnreachable], [routes.ErrNoPermission], the context's, or a broker's
// own words with what was asked of it.
type Client struct {
	options Options
	client  *remoting.Client
	routes  *routes.Table
}

// Open returns a client, which connects when it is first asked. The error names what is wrong with the options.
func Open(o Options) (*Client, error) {
	client := remoting.NewClient(o.Remoting)

	table, err := routes.New(routes.Options{
		Client: client, NameServers: o.NameServers, Namespace: o.Namespace, Log: o.Remoting.Log,
	})
	if err != nil {
		client.Close()

		return nil, err //nolint:wrapcheck // it names the option
	}

	return &Client{options: o, client: client, routes: table}, nil
}

// Close ends the connections.
func (c *Client) Close() { c.client.Close() }

// master is the process of a broker that decides for it.
type master struct{ broker, addr string }

// masters returns those of the whole cluster, sorted by the brokers' names.
func (c *Client) masters(ctx context.Context) ([]master, error) {
	brokers, err := c.routes.Brokers(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says all
	}

	var all []master

	for _, b := range brokers {
		if addr := b.Addrs[0]; addr != "" {
			all = append(all, master{broker: b.Name, addr: addr})
		}
	}

	if len(all) == 0 {
		return nil, fmt.Errorf("%w: the name servers know no broker with a master; is one running?", routes.ErrUnreachable)
	}

	return all, nil
}

// mastersOf returns those of the brokers that have a topic, sorted by their names, and the topic's route.
func (c *Client) mastersOf(ctx context.Context, topic string) ([]master, *routes.Route, error) {
	found, err := c.routes.Refresh(ctx, topic)
	if err != nil {
		return nil, nil, c.routes.Explain(ctx, err) //nolint:wrapcheck // it says all
	}

	var all []master
	for broker, addr := range found.Masters() {
		all = append(all, master{broker: broker, addr: addr})
	}

	slices.SortFunc(all, func(a, b master) int { return cmp.Compare(a.broker, b.broker) })

	return all, found, nil
}

// ask asks a broker; what says for what.
func (c *Client) ask(
	ctx context.Context, at master, what string, request *remoting.Command, accept ...int,
) (*remoting.Command, error) {
	answer, err := c.client.Call(ctx, at.addr, request, accept...)
	if err == nil {
		return answer, nil
	}

	_, lost := errors.AsType[*remoting.ConnectionError](err)
	_, late := errors.AsType[*remoting.TimeoutError](err)

	switch {
	case errors.Is(err, remoting.ErrClosed):
		return nil, consumer.ErrClosed
	case lost || late:
		return nil, fmt.Errorf("%w: broker %s, to %s; is it up, and does the address that it gives to name servers (brokerIP1) "+
			"lead there? %w", routes.ErrUnreachable, at.broker, what, err)
	case routes.Code(err) == remoting.NoPermission:
		return nil, fmt.Errorf("%w to %s at broker %s: check the credentials and their rights: %w",
			routes.ErrNoPermission, what, at.broker, err)
	default:
		return nil, fmt.Errorf("rocketmq: %s at broker %s: %w", what, at.broker, err)
	}
}

func (c *Client) wire(name string) string { return c.options.Namespace.Wrap(name) }
