package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	served "github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/consumer/rocketmq/admin"
)

// DeadLetters implements [station].
func (c *cluster) DeadLetters() deadLetters { return c.letters() } //nolint:ireturn // each station has its own

func (c *cluster) letters() *served.DeadLetters {
	return &served.DeadLetters{Shelf: clusterShelf{c}, Topics: c.deadTopics, Where: control.ParseWhere}
}

// deadTopics returns the dead letters of groups. Topics that a job file names are not found: one would have to read into every
// topic.
func (c *cluster) deadTopics(ctx context.Context) ([]string, error) {
	names, err := c.TopicNames(ctx)
	if err != nil {
		return nil, err
	}

	var dead []string

	for _, name := range names {
		if !strings.HasPrefix(name, consumer.DeadLetterTopic("")) {
			continue
		}

		queues, err := c.admin.Queues(ctx, name)
		if err != nil {
			return nil, err //nolint:wrapcheck // it says what is wrong
		}

		if slices.ContainsFunc(queues, func(q admin.Queue) bool { return q.End > q.First }) {
			dead = append(dead, name)
		}
	}

	return dead, nil
}

// clusterShelf is where the dead letters of a cluster lie.
type clusterShelf struct{ c *cluster }

var _ deadletter.Shelf = clusterShelf{}

// DeadLetters implements [deadletter.Shelf].
func (s clusterShelf) DeadLetters(ctx context.Context, q deadletter.Query, visit func(*deadletter.Letter) error) error {
	err := s.c.desk.DeadLetters(ctx, q, visit)
	if _, unknown := errors.AsType[*consumer.UnknownTopicError](err); unknown {
		return whetherTopic(ctx, s.c, q.Topic, err, "")
	}

	return err //nolint:wrapcheck // it says what is wrong
}

// Settle implements [deadletter.Shelf].
func (s clusterShelf) Settle(ctx context.Context, topic string, all []deadletter.Settlement) error {
	return s.c.desk.Settle(ctx, topic, all) //nolint:wrapcheck // it says what is wrong
}
