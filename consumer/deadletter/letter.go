package deadletter

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Place is where a dead letter lies.
type Place struct {
	Queue  pipeline.Queue  `json:"queue"`
	Offset pipeline.Offset `json:"offset"`
}

// String returns "topic/queue/offset", which [ParsePlace] reads.
func (p Place) String() string {
	return p.Queue.String() + "/" + strconv.FormatInt(int64(p.Offset), 10)
}

// ParsePlace reads topic/queue/offset, where the topic may have an @broker behind it; ok is false for anything else.
func ParsePlace(text string) (p Place, ok bool) {
	front, offset, ok := cutLast(text, "/")
	if !ok {
		return p, false
	}

	topic, queue, ok := cutLast(front, "/")
	if !ok {
		return p, false
	}

	o, err := strconv.ParseInt(offset, 10, 64)
	if err != nil || o < 0 {
		return p, false
	}

	id, err := strconv.Atoi(queue)
	if err != nil || id < 0 {
		return p, false
	}

	p = Place{Queue: pipeline.Queue{Topic: topic, ID: id}, Offset: pipeline.Offset(o)}

	if name, broker, found := cutLast(topic, "@"); found {
		p.Queue.Topic, p.Queue.Broker = name, broker
		ok = broker != ""
	}

	return p, ok && p.Queue.Topic != "" && !strings.HasSuffix(p.Queue.Topic, "@")
}

func cutLast(text, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(text, sep)
	if i < 0 {
		return text, "", false
	}

	return text[:i], text[i+len(sep):], true
}

// MarshalText returns the place as a text.
func (p Place) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what [ParsePlace] does.
func (p *Place) UnmarshalText(text []byte) error {
	place, ok := ParsePlace(string(text))
	if !ok {
		return fmt.Errorf("%q is no place of a dead letter; use TOPIC/QUEUE/OFFSET", text)
	}

	*p = place

	return nil
}

// Message is the message of a letter.
type Message struct {
	ID    string            `json:"id"`
	Key   string            `json:"key,omitempty"`
	Tag   string            `json:"tag,omitempty"`
	Props map[string]string `json:"props,omitempty"`
	Born  time.Time         `json:"born"`
	Body  []byte            `json:"body"`
}

// Pipeline returns the message as brokers take it.
func (m *Message) Pipeline() *pipeline.Message {
	return &pipeline.Message{ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: m.Body}
}

// Letter is a dead letter: the message as it was first published, beside properties that say what put it there.
type Letter struct {
	Message

	Place Place `json:"place"`
	// Settled says that it has been replayed or dropped.
	Settled bool `json:"settled,omitempty"`
	// Failures is how often the broker has counted that it failed; what millrace knows of a cause says that better.
	Failures int `json:"failures,omitempty"`
}

// letterOf makes a letter of a message that was pulled.
func letterOf(m *pipeline.Message) *Letter {
	return &Letter{
		Message: Message{ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: m.Body},
		Place:   Place{Queue: m.Origin.Queue, Offset: m.Origin.Offset}, Failures: max(m.Origin.Delivery-1, 0),
	}
}

// Cause returns what put it there. Messages that are no dead letters of millrace have an empty one.
func (l *Letter) Cause() consumer.Cause {
	c, ok := consumer.CauseOf(l.Props)
	if !ok {
		c.Deliveries = l.Failures
	}

	if c.Group == "" {
		c.Group, _ = strings.CutPrefix(l.Place.Queue.Topic, consumer.DeadLetterTopic(""))
		if c.Group == l.Place.Queue.Topic {
			c.Group = ""
		}
	}

	return c
}

// Topic returns the topic that the message was first published to; empty when that is not known.
func (l *Letter) Topic() string { return l.Props[consumer.PropOriginTopic] }

// Replays returns how often the message has been replayed before.
func (l *Letter) Replays() int {
	n, _ := strconv.Atoi(l.Props[consumer.PropReplays])

	return max(n, 0)
}

// Again returns the message to publish when the letter is replayed: with the id of its first delivery, and without what made it a
// dead letter.
func (l *Letter) Again() *Message {
	m := l.Message
	m.Props = maps.Clone(l.Props)
	maps.DeleteFunc(m.Props, func(name, _ string) bool {
		return strings.HasPrefix(name, consumer.PropDead) || name == consumer.PropReplayChannel
	})

	if first := m.Props[consumer.PropOriginID]; first != "" {
		m.ID = first
	}

	if m.Props == nil {
		m.Props = make(map[string]string)
	}

	m.Props[consumer.PropReplays] = strconv.Itoa(l.Replays() + 1)

	return &m
}

// Home returns where a letter is replayed to: the retry topic of the group that it failed in, so that no other group gets it
// again. It fails for a letter that does not say its group.
func (l *Letter) Home() (string, error) {
	group := l.Cause().Group
	if group == "" {
		return "", fmt.Errorf("%s does not say which group it failed in; name a topic with --to, whose groups all get it",
			l.Place)
	}

	return consumer.RetryTopic(group), nil
}
