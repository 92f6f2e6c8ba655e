package control

import (
	"time"

	"github.com/millrace/millrace/pipeline"
)

// Message is a message as commands write and read it.
type Message struct {
	ID    string            `json:"id,omitempty"`
	Key   string            `json:"key,omitempty"`
	Tag   string            `json:"tag,omitempty"`
	Props map[string]string `json:"props,omitempty"`
	Born  time.Time         `json:"born,omitzero"`
	Body  []byte            `json:"body"`
	// Broker, Queue and Offset say where a message that was read is stored; the embedded broker has no name.
	Broker string          `json:"broker,omitempty"`
	Queue  int             `json:"queue"`
	Offset pipeline.Offset `json:"offset"`
}

// MessageOf returns a message that was read.
func MessageOf(m *pipeline.Message) *Message {
	return &Message{
		ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: m.Body,
		Broker: m.Origin.Queue.Broker, Queue: m.Origin.Queue.ID, Offset: m.Origin.Offset,
	}
}

// Pipeline returns the message as brokers take it.
func (m *Message) Pipeline() *pipeline.Message {
	return &pipeline.Message{ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: m.Body}
}

// Read says what to read of a topic.
type Read struct {
	Topic string
	// From is where to begin in each queue.
	From Position
	// Follow goes on with what is published later; without it reading stops at the present end.
	Follow bool
}

// Reset says where a group is to go on in a topic.
type Reset struct {
	Group, Topic string
	// Queue is the queue's number, below 0 all of them, and Broker the name of the broker that has it, empty for each.
	Broker string
	Queue  int
	To     Position
}

// Means reports whether a queue is to be moved.
func (r Reset) Means(q pipeline.Queue) bool {
	return q.Topic == r.Topic && (r.Queue < 0 || r.Queue == q.ID) && (r.Broker == "" || r.Broker == q.Broker)
}

// Position is a place in a queue: an offset, or what a start position means there.
type Position struct {
	// Offset is the place when At is false.
	Offset pipeline.Offset
	// At says that Start is the place.
	At    bool
	Start pipeline.Start
}

// Moved says what a [Reset] did to a queue.
type Moved struct {
	Queue string          `json:"queue"`
	From  pipeline.Offset `json:"from"`
	To    pipeline.Offset `json:"to"`
	// Stored says that the group had an offset before.
	Stored bool `json:"stored"`
}

// topicRequest makes a topic.
type topicRequest struct {
	Name   string `json:"name"`
	Queues int    `json:"queues"`
}
