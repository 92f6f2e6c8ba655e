package admin

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// Queue is a queue that holds messages from First to, and without, End.
type Queue struct {
	pipeline.Queue

	First, End pipeline.Offset
}

// Topics returns the names of all topics of the namespace, sorted: those of retries and dead letters are among them, those that
// brokers make for themselves are not.
func (c *Client) Topics(ctx context.Context) ([]string, error) {
	return c.routes.AllTopics(ctx) //nolint:wrapcheck // it says all
}

// Queues returns the queues of a topic, sorted.
func (c *Client) Queues(ctx context.Context, topic string) ([]Queue, error) {
	masters, found, err := c.mastersOf(ctx, topic)
	if err != nil {
		return nil, err
	}

	var all []Queue

	for _, m := range masters {
		answer, err := c.ask(ctx, m, fmt.Sprintf("list the queues of topic %q", topic), &remoting.Command{
			Code: remoting.GetTopicStats, Ext: map[string]string{fieldTopic: c.wire(topic)},
		})
		if routes.Code(err) == remoting.TopicNotExist {
			continue // the name server has not heard of that yet
		}

		if err != nil {
			return nil, err
		}

		table, err := readTable[struct {
			Min pipeline.Offset `json:"minOffset"`
			Max pipeline.Offset `json:"maxOffset"`
		}](answer.Body)
		if err != nil {
			return nil, fmt.Errorf("rocketmq: the queues of topic %q at broker %s: %w", topic, m.broker, err)
		}

		for q, is := range table {
			if q.Broker == m.broker && q.ID < found.QueuesAt(m.broker) {
				q.Topic = topic
				all = append(all, Queue{Queue: q, First: max(is.Min, 0), End: max(is.Max, is.Min, 0)})
			}
		}
	}

	slices.SortFunc(all, func(a, b Queue) int { return consumer.CompareQueues(a.Queue, b.Queue) })

	return all, nil
}

// settle is how long a new topic may take to be known to the name servers, and how often they are asked.
const (
	settle      = 10 * time.Second
	settlePause = 50 * time.Millisecond
)

// CreateTopic makes a topic with so many queues at each broker of the cluster, and returns when the name servers know it. A topic
// that is there with as many is left as it is, and one with fewer gets more; none is ever taken from a topic.
func (c *Client) CreateTopic(ctx context.Context, topic string, queues int) error {
	if err := routes.CheckTopic(topic); err != nil {
		return err //nolint:wrapcheck // it says all
	}

	if queues < 1 {
		return fmt.Errorf("rocketmq: topic %q cannot have %d queues; it has at least 1 at each broker", topic, queues)
	}

	masters, err := c.masters(ctx)
	if err != nil {
		return err
	}

	known, err := c.routes.Refresh(ctx, topic)
	if err != nil {
		known = &routes.Route{}
	}

	n := strconv.Itoa(queues)

	for _, m := range masters {
		switch has := known.QueuesAt(m.broker); {
		case has == queues:
			continue
		case has > queues:
			return fmt.Errorf("rocketmq: topic %q has %d queues at broker %s, not %d, and queues are not taken away here: "+
				"what is in them would be lost; mqadmin updateTopic does it", topic, has, m.broker, queues)
		}

		if _, err := c.ask(ctx, m, fmt.Sprintf("make topic %q", topic), &remoting.Command{
			Code: remoting.UpdateTopic, Ext: map[string]string{
				fieldTopic: c.wire(topic), "defaultTopic": "TBW102", "readQueueNums": n, "writeQueueNums": n,
				"perm":            strconv.Itoa(routes.PermRead | routes.PermWrite),
				"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
			},
		}); err != nil {
			return err
		}
	}

	return c.awaitTopic(ctx, topic, masters, queues)
}

// awaitTopic waits until the name servers know a topic as it was made.
func (c *Client) awaitTopic(ctx context.Context, topic string, at []master, queues int) error {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()

	for {
		found, err := c.routes.Refresh(ctx, topic)
		if err == nil && !slices.ContainsFunc(at, func(m master) bool { return found.QueuesAt(m.broker) < queues }) {
			return nil
		}

		select {
		case <-time.After(settlePause):
		case <-ctx.Done():
			return fmt.Errorf("rocketmq: topic %q is made, but the name servers do not know it yet; look again with "+
				"`millrace topics`: %w", topic, ctx.Err())
		}
	}
}
