package control

import (
	"context"
	"strings"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/consumer/embedded"
)

// DeadLetters returns the dead letters of the broker, for an endpoint of this process.
func (s *Server) DeadLetters() *admin.DeadLetters { return s.dead }

// DeadLetters returns the dead letters of the broker. It lasts as long as c.
func (c *Client) DeadLetters() admin.LettersThere { return c.Admin().DeadLetters() }

// deadLetters returns the dead letters of a broker.
func deadLetters(broker *embedded.Broker) *admin.DeadLetters {
	desk := deadletter.NewDesk(broker, broker)

	return &admin.DeadLetters{Shelf: desk, Where: ParseWhere, Topics: func(ctx context.Context) ([]string, error) {
		var topics []string

		for _, topic := range broker.Topics() {
			if strings.HasPrefix(topic, consumer.RetryTopic("")) {
				continue
			}

			holds, err := desk.Holds(ctx, topic)
			if err != nil {
				return nil, err //nolint:wrapcheck // it says what is wrong
			}

			if holds {
				topics = append(topics, topic)
			}
		}

		return topics, nil
	}}
}
