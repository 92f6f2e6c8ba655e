package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// Group is a consumer group.
type Group struct {
	Name string
	// Members are the names by which brokers know its members, sorted.
	Members []string
	// Offsets are the queues in which it has stored an offset, sorted.
	Offsets []Progress
}

// Progress is how far a group is in a queue.
type Progress struct {
	pipeline.Queue

	// Next is the stored offset, End the queue's end.
	Next, End pipeline.Offset
}

// Groups returns the names of all groups of the namespace, sorted, but for those of RocketMQ's own tools.
func (c *Client) Groups(ctx context.Context) ([]string, error) {
	masters, err := c.masters(ctx)
	if err != nil {
		return nil, err
	}

	names := map[string]bool{}

	for _, m := range masters {
		answer, err := c.ask(ctx, m, "list the groups", &remoting.Command{Code: remoting.GetAllGroups})
		if err != nil {
			return nil, err
		}

		var list struct {
			Table map[string]json.RawMessage `json:"subscriptionGroupTable"`
		}

		if err := decode(answer.Body, &list); err != nil {
			return nil, fmt.Errorf("rocketmq: the groups of broker %s: %w", m.broker, err)
		}

		for wire := range list.Table {
			if c.options.Namespace.Holds(wire) && !isTool(wire) {
				names[c.options.Namespace.Unwrap(wire)] = true
			}
		}
	}

	return slices.Sorted(maps.Keys(names)), nil
}

// isTool reports whether a group is one that each broker has for RocketMQ's own tools and proxies.
func isTool(group string) bool {
	return strings.HasPrefix(group, "CID_RMQ_SYS_") || strings.HasPrefix(group, "CID_ONS") || slices.Contains([]string{
		ToolsGroup, "FILTERSRV_CONSUMER", "SELF_TEST_C_GROUP", "SELF_TEST_P_GROUP", "__MONITOR_CONSUMER",
		"DEFAULT_CONSUMER", "CID_DefaultHeartBeatSyncerTopic",
	}, group)
}

// ToolsGroup is a group that every broker has, for reading topics beside the groups that work on them.
const ToolsGroup = "TOOLS_CONSUMER"

// Group returns the members of a group and how far it is. Of a group that nobody knows it returns nothing but the name.
func (c *Client) Group(ctx context.Context, name string) (Group, error) {
	g := Group{Name: name}

	masters, err := c.masters(ctx)
	if err != nil {
		return g, err
	}

	members := map[string]bool{}

	for _, m := range masters {
		if err := c.addMembers(ctx, m, name, members); err != nil {
			return g, err
		}

		if err := c.addOffsets(ctx, m, &g); err != nil {
			return g, err
		}
	}

	g.Members = slices.Sorted(maps.Keys(members))
	slices.SortFunc(g.Offsets, func(a, b Progress) int { return consumer.CompareQueues(a.Queue, b.Queue) })

	return g, nil
}

func (c *Client) addMembers(ctx context.Context, m master, group string, to map[string]bool) error {
	answer, err := c.ask(ctx, m, fmt.Sprintf("list the members of group %q", group), &remoting.Command{
		Code: remoting.GetConsumerList, Ext: map[string]string{fieldGroup: c.wire(group)},
	}, remoting.SystemError) // none are known
	if err != nil || answer.Code != remoting.Success {
		return err
	}

	var list struct {
		IDs []string `json:"consumerIdList"`
	}

	if err := decode(answer.Body, &list); err != nil {
		return fmt.Errorf("rocketmq: the members of group %q at broker %s: %w", group, m.broker, err)
	}

	for _, id := range list.IDs {
		to[id] = true
	}

	return nil
}

// addOffsets adds what a group has stored at a broker.
func (c *Client) addOffsets(ctx context.Context, m master, g *Group) error {
	answer, err := c.ask(ctx, m, fmt.Sprintf("look up the offsets of group %q", g.Name), &remoting.Command{
		Code: remoting.GetConsumeStats, Ext: map[string]string{fieldGroup: c.wire(g.Name)},
	})
	if err != nil {
		return err
	}

	table, err := readTable[struct {
		End  pipeline.Offset `json:"brokerOffset"`
		Next pipeline.Offset `json:"consumerOffset"`
	}](answer.Body)
	if err != nil {
		return fmt.Errorf("rocketmq: the offsets of group %q at broker %s: %w", g.Name, m.broker, err)
	}

	for q, is := range table {
		if q.Broker != m.broker {
			continue
		}

		p := Progress{Queue: q, Next: is.Next, End: max(is.End, is.Next)}
		p.Topic = c.options.Namespace.Unwrap(q.Topic)

		if p.Next <= 0 { // brokers say 0 here also where nothing is stored
			stored, err := c.isStored(ctx, m, g.Name, p.Queue)
			if err != nil {
				return err
			}

			if !stored {
				continue
			}
		}

		g.Offsets = append(g.Offsets, p)
	}

	return nil
}

// isStored reports whether a group has stored an offset in a queue. Brokers of version 4 say that of an offset of 0, too.
func (c *Client) isStored(ctx context.Context, m master, group string, q pipeline.Queue) (bool, error) {
	answer, err := c.ask(ctx, m, fmt.Sprintf("look up the offset of group %q in %s", group, q), &remoting.Command{
		Code: remoting.QueryConsumerOffset, Ext: map[string]string{
			fieldGroup: c.wire(group), fieldTopic: c.wire(q.Topic), "queueId": strconv.Itoa(q.ID), "bname": q.Broker,
			"setZeroIfNotFound": "false",
		},
	}, remoting.QueryNotFound)

	return err == nil && answer.Code == remoting.Success, err
}

// Fields of requests.
const (
	fieldTopic = "topic"
	fieldGroup = "consumerGroup"
)

// firstOfFive is the protocol's version of release 5.0.0.
const firstOfFive = 413

// Reset tells a broker where a group is to go on in a queue. Its members hear of it with their next pull, after up to 20 s, and
// until then nothing that they commit counts. It is for groups that have members: what millrace remembers as finished above the
// offset is theirs to forget.
func (c *Client) Reset(ctx context.Context, group string, q pipeline.Queue, to pipeline.Offset) error {
	addr, err := c.routes.Master(ctx, q)
	if err != nil {
		return c.routes.Explain(ctx, err) //nolint:wrapcheck // it says all
	}

	at := master{broker: q.Broker, addr: addr}
	what := fmt.Sprintf("reset group %q in %s", group, q)

	list, err := c.ask(ctx, at, what, &remoting.Command{
		Code: remoting.GetConsumerList, Ext: map[string]string{fieldGroup: c.wire(group)},
	}, remoting.SystemError)
	if err != nil {
		return err
	}

	if list.Version < firstOfFive {
		return fmt.Errorf("rocketmq: %s: broker %s is of version 4, which moves running groups by times only; stop the group's "+
			"members and call this again, or use mqadmin resetOffsetByTime", what, q.Broker)
	}

	_, err = c.ask(ctx, at, what, &remoting.Command{Code: remoting.ResetOffset, Ext: map[string]string{
		fieldTopic: c.wire(q.Topic), "group": c.wire(group), "timestamp": "-1", "isForce": "true",
		"queueId": strconv.Itoa(q.ID), "offset": strconv.FormatInt(int64(to), 10),
	}})
	if routes.Code(err) == remoting.GroupNotExist {
		return fmt.Errorf("rocketmq: %s: the broker has never seen the group: %w", what, err)
	}

	return err
}
