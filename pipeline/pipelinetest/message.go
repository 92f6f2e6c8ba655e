package pipelinetest

import (
	"bytes"
	"fmt"
	"maps"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Message returns a message as a queue would deliver it first, at offset 0, with that body and nothing that is optional:
// no key, no tag, no properties.
func Message(body string) *pipeline.Message { return Messages(body)[0] }

// Messages returns messages that follow each other in one queue, with these bodies.
func Messages(bodies ...string) []*pipeline.Message {
	born := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	batch := make([]*pipeline.Message, len(bodies))

	for i, body := range bodies {
		batch[i] = &pipeline.Message{
			ID:    fmt.Sprintf("message-%d", i),
			Topic: "test",
			Body:  []byte(body),
			Born:  born.Add(time.Duration(i) * time.Second),
			Origin: pipeline.Origin{
				Queue: pipeline.Queue{Topic: "test"}, Offset: pipeline.Offset(i), Epoch: 1, Delivery: 1,
			},
		}
	}

	return batch
}

// snapshot returns a copy that shares nothing with m.
func snapshot(m *pipeline.Message) *pipeline.Message {
	c := m.Clone()
	c.Body = bytes.Clone(m.Body)

	return c
}

// same reports whether two messages hold the same, their origins aside.
func same(a, b *pipeline.Message) bool {
	return a.ID == b.ID && a.Topic == b.Topic && a.Key == b.Key && a.Tag == b.Tag && bytes.Equal(a.Body, b.Body) &&
		maps.Equal(a.Props, b.Props) && a.Born.Equal(b.Born)
}

// show writes a message for a person.
func show(m *pipeline.Message) string {
	const shown = 100

	body, more := m.Body, ""
	if len(body) > shown {
		body, more = body[:shown], fmt.Sprintf("… (%d bytes)", len(m.Body))
	}

	return fmt.Sprintf("{id %q, topic %q, key %q, tag %q, body %q%s, props %q, born %s}",
		m.ID, m.Topic, m.Key, m.Tag, body, more, m.Props, m.Born.Format(time.RFC3339Nano))
}
