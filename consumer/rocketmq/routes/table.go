package routes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// Options are the settings of a Table. Client and NameServers must be set.
type Options struct {
	// Client makes the calls. Whoever made it closes it, after the last call to the table.
	Client *remoting.Client
	// NameServers are the addresses of the name servers, "host:port"; at least one. They are asked one after the other
	// until one answers.
	NameServers []string
	// Namespace is what names of topics are wrapped in on the wire; empty means nothing.
	Namespace Namespace
	// Log gets what Keep cannot return; nil means nothing is logged.
	Log *zap.Logger
}

// Table knows where topics are. Topics have the names that they have without their namespace. It is safe for concurrent use.
type Table struct {
	options Options

	mu    sync.Mutex
	first int               // the server that answered last
	known map[string]*Route // by topic, as the name servers last told
}

// New returns a table that knows nothing yet. The error names everything that is wrong with the options.
func New(o Options) (*Table, error) {
	wrong := []error{CheckNameServers(o.NameServers)}

	if o.Client == nil {
		wrong = append(wrong, errors.New("rocketmq: routes.Options.Client is nil: it makes the calls"))
	}

	if o.Namespace != "" {
		wrong = append(wrong, checkName("namespace", string(o.Namespace), maxGroup))
	}

	if o.Log == nil {
		o.Log = zap.NewNop()
	}

	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}

	o.NameServers = slices.Clone(o.NameServers)

	return &Table{options: o, known: map[string]*Route{}}, nil
}

// CheckNameServers returns an error that names each address that cannot be one.
func CheckNameServers(addrs []string) error {
	if len(addrs) == 0 {
		return errors.New("rocketmq: no name server: name at least one, such as 127.0.0.1:9876")
	}

	var wrong []error

	for _, addr := range addrs {
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			wrong = append(wrong, fmt.Errorf("rocketmq: name server %q is not host:port, such as 127.0.0.1:9876", addr))
		}
	}

	return errors.Join(wrong...)
}

// Of returns the route that is known of a topic, after asking for it when none is. It fails as Refresh does.
func (t *Table) Of(ctx context.Context, topic string) (*Route, error) {
	if known := t.Cached(topic); known != nil {
		return known, nil
	}

	return t.Refresh(ctx, topic)
}

// Cached returns the route that is known of a topic, or nil.
func (t *Table) Cached(topic string) *Route {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.known[topic]
}

// Refresh asks the name servers for a topic's route. When that fails the one known before stays. The error is a
// [*consumer.UnknownTopicError] when no name server knows the topic, and otherwise one of Ask's.
func (t *Table) Refresh(ctx context.Context, topic string) (*Route, error) {
	got, err := t.Ask(ctx, &remoting.Command{
		Code: remoting.GetRouteInfo,
		Ext:  map[string]string{"topic": t.options.Namespace.Wrap(topic), "acceptStandardJsonOnly": "true"},
	})
	if Code(err) == remoting.TopicNotExist {
		return nil, &consumer.UnknownTopicError{Topic: topic}
	}

	if err != nil {
		return nil, err
	}

	found, err := parse(topic, got.Body)
	if err != nil {
		return nil, err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	t.known[topic] = found

	return found, nil
}

// Forget drops what is known of a topic, which Keep then does not ask for any more.
func (t *Table) Forget(topic string) {
	t.mu.Lock()
	defer t.mu.Unlock()

	delete(t.known, topic)
}

// Keep asks for every known topic again each time that every has passed, until ctx ends, and only then returns.
func (t *Table) Keep(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}

		t.mu.Lock()
		topics := slices.Sorted(maps.Keys(t.known))
		t.mu.Unlock()

		for _, topic := range topics {
			if _, err := t.Refresh(ctx, topic); err != nil && ctx.Err() == nil {
				t.options.Log.Warn("the route of a topic is not renewed; the one known before stays",
					zap.String("topic", topic), zap.Error(err))
			}
		}
	}
}

// Master returns the address of the master that has a queue. A broker that is not in the known route is asked for once. The
// error is [ErrUnreachable] when the name servers know none, and otherwise one of Refresh's.
func (t *Table) Master(ctx context.Context, q pipeline.Queue) (string, error) {
	return t.address(ctx, q, func(found *Route) string { return found.Master(q.Broker) })
}

// Reader returns where to read a queue, at the preferred id where there is such a one. It fails as Master does.
func (t *Table) Reader(ctx context.Context, q pipeline.Queue, prefer int) (string, error) {
	return t.address(ctx, q, func(found *Route) string { return found.Reader(q.Broker, prefer) })
}

func (t *Table) address(ctx context.Context, q pipeline.Queue, of func(*Route) string) (string, error) {
	if known := t.Cached(q.Topic); known != nil {
		if addr := of(known); addr != "" {
			return addr, nil
		}
	}

	found, err := t.Refresh(ctx, q.Topic)
	if err != nil {
		return "", err
	}

	if addr := of(found); addr != "" {
		return addr, nil
	}

	return "", fmt.Errorf("%w: the name servers know no broker %q of topic %q now: is it running?",
		ErrUnreachable, q.Broker, q.Topic)
}
