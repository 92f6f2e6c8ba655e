// Package topic is the sink that publishes messages to a topic of a broker, so that one job can follow another.
package topic

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Options say where a [Sink] publishes.
type Options struct {
	// Name is the topic. Required.
	Name string `help:"The topic to publish to." option:"name,required,main"`
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Publishes messages to a topic of the job's broker, so that one job can follow another.",
		Text: "Key, tag, properties, body and id are passed on. Delivery is at least once: a batch that failed may be there " +
			"in part and is published whole when it is tried again.",
		Example: "topic: { name: alerts }",
	}
}

// Sink publishes each message with its key, tag, properties, body and id. The id is the source message's unless a stage
// has set another, so a consumer can tell repeats by it. Two things are not passed on: Born, since the message is
// published anew, and properties that begin with "millrace.", with which a broker tells the past of a message in the
// topic that it came from.
//
// Delivery is at least once: a batch that failed may be there in part, and is published whole when it is tried again.
// It is safe for concurrent use.
type Sink struct {
	publisher consumer.Publisher
	name      string
}

var _ pipeline.Sink = (*Sink)(nil)

// New returns a sink that publishes through p, which stays the caller's to close.
func New(p consumer.Publisher, o Options) (*Sink, error) {
	switch {
	case p == nil:
		return nil, errors.New("topic: a publisher is required")
	case o.Name == "":
		return nil, errors.New("topic: a name is required")
	}

	return &Sink{publisher: p, name: o.Name}, nil
}

// Write publishes the batch in one call; an error fails all of it, unless the publisher says in a [*pipeline.BatchError] which of
// its messages have failed, and which of them no broker will take.
func (s *Sink) Write(ctx context.Context, batch []*pipeline.Message) error {
	messages := make([]*pipeline.Message, len(batch))

	for i, m := range batch {
		c := *m
		c.Born = time.Time{}
		c.Props = passedOn(m.Props)
		messages[i] = &c
	}

	if err := s.publisher.Publish(ctx, s.name, messages); err != nil {
		return fmt.Errorf("topic: %s: %w", s.name, err)
	}

	return nil
}

// passedOn returns props without the broker's own; without a copy when there is none of these.
func passedOn(props map[string]string) map[string]string {
	for name := range props {
		if reserved(name) {
			props = maps.Clone(props)
			maps.DeleteFunc(props, func(name, _ string) bool { return reserved(name) })

			break
		}
	}

	return props
}

func reserved(prop string) bool { return strings.HasPrefix(prop, "millrace.") }
