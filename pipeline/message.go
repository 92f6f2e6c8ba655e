package pipeline

import (
	"maps"
	"time"
)

// Offset is a position in a queue. The first message of a queue has offset 0.
type Offset int64

// Origin is where a message was pulled from. Messages that a stage emits inherit the origin of their source.
type Origin struct {
	// Queue and Offset locate the record at the broker.
	Queue  Queue
	Offset Offset
	// Epoch is the generation of the queue's ownership under which the message was pulled.
	Epoch uint64
	// Delivery counts the attempts at this message, 1 for the first.
	Delivery int
}

// Message is one message on its way through a job.
//
// A stage that gets a Message owns it until it returns or emits it: it may change the fields and emit the same value.
// The bytes of Body are shared with copies of the message in other channels and must not be changed in place: assign a
// new slice.
type Message struct {
	// ID is the broker's id of the source message, or one that a producer chose.
	ID string
	// Topic is the topic that the message was published to (for a redelivery: the topic of its first delivery).
	Topic string
	// Key orders and routes: messages of one key are kept in order by channels that ask for it. Empty: no key.
	Key string
	// Tag classifies a message for filters and routes. Empty: no tag.
	Tag string
	// Body is the payload.
	Body []byte
	// Props are free properties; nil is an empty map.
	Props map[string]string
	// Born is when the message was published, by the producer's clock.
	Born time.Time
	// Origin is where the message was pulled from.
	Origin Origin

	memo Memo // see SetMemo
}

// Size returns the bytes that a message counts for against limits: body, key, tag, id and properties.
func (m *Message) Size() int {
	n := len(m.Body) + len(m.Key) + len(m.Tag) + len(m.ID)

	if len(m.Props) == 0 {
		return n // ranging over an empty map costs more than all the rest
	}

	for k, v := range m.Props {
		n += len(k) + len(v)
	}

	return n
}

// Clone returns a copy that shares only the bytes of Body, and the memo of it.
func (m *Message) Clone() *Message {
	c := *m
	c.Props = maps.Clone(m.Props)

	return &c
}

// SetProp sets a property, making the map when there is none.
func (m *Message) SetProp(key, value string) {
	if m.Props == nil {
		m.Props = make(map[string]string, 1)
	}

	m.Props[key] = value
}
