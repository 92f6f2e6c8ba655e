package rocketmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// allTopics asks a name server for the names of all topics.
const allTopics = 206

// routes knows where topics are, from the name servers. It is safe for concurrent use.
type routes struct {
	client  *remoting.Client
	space   namespace
	servers []string
	log     *zap.Logger

	mu    sync.Mutex
	first int               // the server that answered last
	known map[string]*route // by topic, as the name servers last told
}

func newRoutes(o Options) *routes {
	return &routes{
		client: remoting.NewClient(o.remoting()), space: namespace(o.Namespace), servers: o.NameServers, log: o.Log,
		known: map[string]*route{},
	}
}

// of returns the route that is known of a topic, after asking for it when none is.
func (r *routes) of(ctx context.Context, topic string) (*route, error) {
	if known := r.cached(topic); known != nil {
		return known, nil
	}

	return r.refresh(ctx, topic)
}

// cached returns the route that is known of a topic, or nil.
func (r *routes) cached(topic string) *route {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.known[topic]
}

// refresh asks for a topic's route. When that fails the one known before stays. The error is a
// [*consumer.UnknownTopicError] when no name server knows the topic.
func (r *routes) refresh(ctx context.Context, topic string) (*route, error) {
	answer, err := r.ask(ctx, &remoting.Command{
		Code: remoting.GetRouteInfo,
		Ext:  map[string]string{"topic": r.space.wrap(topic), "acceptStandardJsonOnly": "true"},
	})
	if codeOf(err) == remoting.TopicNotExist {
		return nil, &consumer.UnknownTopicError{Topic: topic}
	}

	if err != nil {
		return nil, err
	}

	found, err := parseRoute(topic, answer.Body)
	if err != nil {
		return nil, err
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.known[topic] = found

	return found, nil
}

// ask asks the name servers, beginning with the one that answered last, until one answers. Unknown topics are asked for at
// all of them: one that was started just now knows nothing yet.
func (r *routes) ask(ctx context.Context, request *remoting.Command) (*remoting.Command, error) {
	r.mu.Lock()
	first := r.first
	r.mu.Unlock()

	var failures []error

	for i := range r.servers {
		at := (first + i) % len(r.servers)

		answer, err := r.client.Call(ctx, r.servers[at], request)
		if err == nil {
			r.mu.Lock()
			r.first = at
			r.mu.Unlock()

			return answer, nil
		}

		if errors.Is(err, remoting.ErrClosed) {
			return nil, consumer.ErrClosed
		}

		failures = append(failures, err)
	}

	return nil, r.worst(failures)
}

// worst returns the one error that tells most: an answer before a name server that cannot be reached.
func (r *routes) worst(failures []error) error {
	for _, err := range failures {
		switch codeOf(err) {
		case -1:
		case remoting.NoPermission:
			return fmt.Errorf("%w to ask the name server: check Options.Credentials: %w", ErrNoPermission, err)
		default:
			return fmt.Errorf("rocketmq: %w", err)
		}
	}

	return fmt.Errorf("%w: no name server answers at %s; is one running there, and TLS the same on both sides? %w",
		ErrUnreachable, strings.Join(r.servers, ", "), errors.Join(failures...))
}

// unknown fills in the topics that there are, when the name servers tell.
func (r *routes) unknown(ctx context.Context, err error) error {
	missing, ok := errors.AsType[*consumer.UnknownTopicError](err)
	if !ok {
		return err
	}

	answer, failed := r.ask(ctx, &remoting.Command{Code: allTopics})
	if failed != nil {
		return err
	}

	var list struct {
		Topics []string `json:"topicList"`
	}

	if json.Unmarshal(answer.Body, &list) != nil {
		return err
	}

	// Topics that begin with % or are the brokers' own are not what anybody meant.
	for _, name := range list.Topics {
		if !strings.Contains(name, "%") && !isSystem(name) || strings.HasPrefix(name, string(r.space)+"%") {
			missing.Known = append(missing.Known, r.space.unwrap(name))
		}
	}

	slices.Sort(missing.Known)

	return missing
}

// isSystem reports whether a topic is one that brokers make for themselves.
func isSystem(topic string) bool {
	return strings.HasPrefix(topic, "RMQ_SYS_") || strings.HasPrefix(topic, "rmq_sys_") || slices.Contains([]string{
		"TBW102", "SCHEDULE_TOPIC_XXXX", "BenchmarkTest", "OFFSET_MOVED_EVENT", "SELF_TEST_TOPIC",
	}, topic)
}

// master returns the address of the master that has a queue. A broker that is not in the known route is asked for once.
func (r *routes) master(ctx context.Context, q pipeline.Queue) (string, error) {
	return r.address(ctx, q, func(found *route) string { return found.master(q.Broker) })
}

// anyOf returns where to read a queue, at the preferred id where there is such a one.
func (r *routes) anyOf(ctx context.Context, q pipeline.Queue, prefer int) (string, error) {
	return r.address(ctx, q, func(found *route) string { return found.address(q.Broker, prefer) })
}

func (r *routes) address(ctx context.Context, q pipeline.Queue, of func(*route) string) (string, error) {
	known, err := r.of(ctx, q.Topic)
	if err != nil {
		return "", err
	}

	if addr := of(known); addr != "" {
		return addr, nil
	}

	if known, err = r.refresh(ctx, q.Topic); err != nil {
		return "", err
	}

	if addr := of(known); addr != "" {
		return addr, nil
	}

	return "", fmt.Errorf("%w: the name servers know no broker %q of topic %q now", ErrUnreachable, q.Broker, q.Topic)
}

func (r *routes) close() { r.client.Close() }
