package admin

import (
	"context"
	"errors"
	"fmt"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// DeleteTopic removes a topic with all messages in it, at every broker and name server. One that is not there is gone already.
func (c *Client) DeleteTopic(ctx context.Context, topic string) error {
	masters, err := c.masters(ctx)
	if err != nil {
		return err
	}

	what := fmt.Sprintf("delete topic %q", topic)

	for _, m := range masters {
		request := &remoting.Command{Code: remoting.DeleteTopic, Ext: map[string]string{fieldTopic: c.wire(topic)}}
		if _, err := c.ask(ctx, m, what, request, remoting.TopicNotExist); err != nil && !c.isGone(ctx, m, topic) {
			return err
		}
	}

	for _, addr := range c.options.NameServers {
		request := &remoting.Command{Code: remoting.DeleteTopicRoutes, Ext: map[string]string{fieldTopic: c.wire(topic)}}
		if _, err := c.client.Call(ctx, addr, request, remoting.TopicNotExist); err != nil {
			return fmt.Errorf("rocketmq: %s at name server %s: %w", what, addr, err)
		}
	}

	return nil
}

// isGone reports whether a broker says that it has no such topic. Brokers of version 5 whose timer is off answer the deletion
// with an error when all is done (seen with 5.3.3).
func (c *Client) isGone(ctx context.Context, at master, topic string) bool {
	_, err := c.ask(ctx, at, fmt.Sprintf("look for topic %q", topic), &remoting.Command{
		Code: remoting.GetTopicStats, Ext: map[string]string{fieldTopic: c.wire(topic)},
	})

	return routes.Code(err) == remoting.TopicNotExist
}

// DeleteGroup removes a group and its offsets at every broker. Its topics of retries and dead letters stay.
func (c *Client) DeleteGroup(ctx context.Context, name string) error {
	masters, err := c.masters(ctx)
	if err != nil {
		return err
	}

	for _, m := range masters {
		_, err := c.ask(ctx, m, fmt.Sprintf("delete group %q", name), &remoting.Command{
			Code: remoting.DeleteGroup, Ext: map[string]string{"groupName": c.wire(name), "cleanOffset": "true"},
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// errNoNamespace guards a whole cluster against being cleared.
var errNoNamespace = errors.New("rocketmq: only a namespace can be cleared, and the client has none")

// Clear removes all topics and groups of the client's namespace. A client without one refuses.
func (c *Client) Clear(ctx context.Context) error {
	if c.options.Namespace == "" {
		return errNoNamespace
	}

	topics, err := c.Topics(ctx)
	if err != nil {
		return err
	}

	for _, topic := range topics {
		if err := c.DeleteTopic(ctx, topic); err != nil {
			return err
		}
	}

	groups, err := c.Groups(ctx)
	if err != nil {
		return err
	}

	for _, group := range groups {
		if err := c.DeleteGroup(ctx, group); err != nil {
			return err
		}
	}

	return nil
}
