package pipeline

import (
	"encoding"
	"fmt"
	"strconv"
	"strings"
)

// Queue names one ordered log of a topic (Kafka: a partition). In JSON it is the text that String returns.
type Queue struct {
	// Topic is the topic that the queue is a part of.
	Topic string
	// Broker is the name of the broker that holds the queue; empty where a topic lives in one place only.
	Broker string
	// ID numbers the queue inside its topic and broker, from 0.
	ID int
}

var (
	_ encoding.TextMarshaler   = Queue{}
	_ encoding.TextUnmarshaler = (*Queue)(nil)
)

// String returns "topic/id", or "topic@broker/id" where the broker has a name.
func (q Queue) String() string {
	if q.Broker == "" {
		return q.Topic + "/" + strconv.Itoa(q.ID)
	}

	return q.Topic + "@" + q.Broker + "/" + strconv.Itoa(q.ID)
}

// ParseQueue reads what String returns. It fails with an error that says what a queue looks like.
func ParseQueue(text string) (Queue, error) {
	slash := strings.LastIndexByte(text, '/')
	if slash < 1 {
		return Queue{}, fmt.Errorf("pipeline: %q is no queue; one is like quakes/2, or quakes@broker-a/2", text)
	}

	q := Queue{Topic: text[:slash]}
	if topic, broker, ok := strings.Cut(q.Topic, "@"); ok {
		q.Topic, q.Broker = topic, broker
	}

	id, err := strconv.ParseUint(text[slash+1:], 10, 31)
	if err != nil || q.Topic == "" {
		return Queue{}, fmt.Errorf("pipeline: %q is no queue; one is like quakes/2, or quakes@broker-a/2", text)
	}

	q.ID = int(id)

	return q, nil
}

// MarshalText returns what String returns.
func (q Queue) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText reads what String returns, as [ParseQueue] does.
func (q *Queue) UnmarshalText(text []byte) error {
	parsed, err := ParseQueue(string(text))
	if err != nil {
		return err
	}

	*q = parsed

	return nil
}
