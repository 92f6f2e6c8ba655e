package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// introduce looks for the topics and makes their brokers know the member, after asking them whether they can filter as it
// wants and let it read.
func (m *member) introduce(ctx context.Context) error {
	for _, topic := range m.topics {
		found, err := m.routes.Refresh(ctx, topic)
		if err != nil {
			return m.routes.Explain(ctx, err) //nolint:wrapcheck // of the same family
		}

		if len(found.Readable) == 0 {
			return fmt.Errorf("%w: topic %q has no queue to read from: its permissions, or those of its brokers, forbid it",
				ErrNoPermission, topic)
		}

		if err := m.checkFilter(ctx, topic, found); err != nil {
			return err
		}
	}

	failed := m.beatAll(ctx)

	for _, err := range failed {
		if routes.Code(err) >= 0 {
			return explain(m.group, err)
		}

		m.log.Warn("a broker did not take the first heartbeat", zap.Error(err))
	}

	// With some brokers away there is still something to read.
	if len(failed) > 0 && len(failed) == len(m.addresses()) {
		return fmt.Errorf("%w: no broker of %s answers at %s: %w",
			ErrUnreachable, strings.Join(m.topics, ", "), strings.Join(m.addresses(), ", "), errors.Join(failed...))
	}

	return m.probe(ctx)
}

// probe finds out whether the group may read the topics. It asks for queues that there are not, since brokers check
// everything else before that, and a pull of a real one could take the mark of an administrator's reset from its owner.
func (m *member) probe(ctx context.Context) error {
	for _, topic := range m.topics {
		found, err := m.routes.Of(ctx, topic)
		if err != nil {
			return err //nolint:wrapcheck // of the same family
		}

		q := found.Readable[0]
		q.ID = 1 << 20

		_, err = m.call(ctx, found.Reader(q.Broker, 0), m.pullRequest(q, pullWish{messages: 1, filter: Filter{}}))
		if code := routes.Code(err); code == remoting.GroupNotExist || code == remoting.NoPermission {
			return explain(m.group, err)
		}
	}

	return nil
}

// checkFilter asks each broker of a topic whether it understands the topic's SQL: one that it does not understand lets
// everything pass when it comes with a pull.
func (m *member) checkFilter(ctx context.Context, topic string, found *routes.Route) error {
	if m.options.Filters[topic].SQL == "" {
		return nil
	}

	request := &remoting.Command{Code: remoting.CheckClientConfig, Body: encode(struct {
		ClientID     string       `json:"clientId"`
		Group        string       `json:"group"`
		Subscription subscription `json:"subscriptionData"`
	}{m.id, m.wire(m.group), m.subscription(topic)})}

	for broker, addr := range found.Masters() {
		_, err := m.call(ctx, addr, request)

		switch routes.Code(err) {
		case -1: // no answer is an error too
			if err != nil {
				return fmt.Errorf("rocketmq: broker %s is to check the filter of topic %q: %w", broker, topic, err)
			}
		case remoting.SubscriptionParseFail:
			return fmt.Errorf("%w: broker %s does not understand the SQL of topic %q, %s: %w",
				ErrBadFilter, broker, topic, strconv.Quote(m.options.Filters[topic].SQL), err)
		default:
			return fmt.Errorf("%w: broker %s does not filter topic %q by SQL: it needs enablePropertyFilter=true: %w",
				ErrBadFilter, broker, topic, err)
		}
	}

	return nil
}
