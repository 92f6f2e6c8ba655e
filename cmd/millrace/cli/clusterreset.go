package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/consumer/rocketmq/admin"
)

// Reset implements [catalog]: through the brokers, which tell a group's members, or where it has none as its member.
func (c *cluster) Reset(ctx context.Context, r control.Reset) ([]control.Moved, error) {
	g, err := c.group(ctx, r.Group)
	if err != nil {
		return nil, err
	}

	if len(g.Offsets)+len(g.Members) == 0 {
		known, err := c.admin.Groups(ctx)
		if err != nil {
			return nil, err //nolint:wrapcheck // it says what is wrong
		}

		if !slices.Contains(known, r.Group) {
			return nil, noGroup(r.Group, known)
		}
	}

	queues, err := c.meant(ctx, r)
	if err != nil {
		return nil, err
	}

	move := c.commit
	if len(g.Members) > 0 {
		move = c.tell
	}

	moved, err := move(ctx, r, queues)

	for i := range moved {
		at := slices.IndexFunc(g.Offsets, func(o embedded.GroupOffset) bool { return o.Queue.String() == moved[i].Queue })
		if moved[i].Stored = at >= 0; at >= 0 {
			moved[i].From = g.Offsets[at].Next
		}
	}

	return moved, err
}

// meant returns the queues that a reset means.
func (c *cluster) meant(ctx context.Context, r control.Reset) ([]admin.Queue, error) {
	all, err := c.admin.Queues(ctx, r.Topic)
	if _, unknown := errors.AsType[*consumer.UnknownTopicError](err); unknown {
		return nil, whetherTopic(ctx, c, r.Topic, err, "")
	}

	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}

	var meant []admin.Queue

	names := make([]string, len(all))

	for i, q := range all {
		names[i] = q.String()

		if r.Means(q.Queue) {
			meant = append(meant, q)
		}
	}

	if len(meant) == 0 {
		return nil, fmt.Errorf("topic %q has no such queue; it has %s", r.Topic, strings.Join(names, ", "))
	}

	return meant, nil
}

// tell has the brokers tell the group's members.
func (c *cluster) tell(ctx context.Context, r control.Reset, queues []admin.Queue) ([]control.Moved, error) {
	offsets, err := c.reader().Offsets(ctx, r)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}

	var moved []control.Moved

	for _, q := range queues {
		to, found := offsets[q.Queue]
		if !found {
			continue // it has come since
		}

		if err := c.admin.Reset(ctx, r.Group, q.Queue, to); err != nil {
			return moved, err //nolint:wrapcheck // as above
		}

		moved = append(moved, control.Moved{Queue: q.String(), To: to})
	}

	return moved, nil
}

// commit stores the offsets as the group's only member.
func (c *cluster) commit(ctx context.Context, r control.Reset, queues []admin.Queue) ([]control.Moved, error) {
	if r.Topic == consumer.RetryTopic(r.Group) {
		return nil, fmt.Errorf("the retries of group %q are not moved while it has no members; start a job of it first", r.Group)
	}

	moved, err := control.Commit(ctx, c.ground.Broker, r)
	if err == nil && len(moved) < len(queues) {
		err = fmt.Errorf("a member has joined group %q meanwhile, and %d of %d queues are not moved; call this again",
			r.Group, len(queues)-len(moved), len(queues))
	}

	return moved, err
}
