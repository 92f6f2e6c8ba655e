package producer

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/pipeline"
)

// Message is one message to send.
type Message struct {
	// ID is the message's id; empty means one that is made up.
	ID string
	// Key orders messages: those of one topic with the same key go to one queue, one after the other. Consoles find messages
	// by it. Empty means any queue.
	Key string
	// Tag is what consumers choose messages by.
	Tag string
	// Body is the payload. RocketMQ takes no empty one: what is sent then is a space and the property [record.PropEmpty], by
	// which millrace's consumer knows it.
	Body []byte
	// Props are free properties. Names that RocketMQ gives a meaning and a field here has are refused.
	Props map[string]string
	// Born is when the message was made; zero means now.
	Born time.Time
	// Delay is the level of the delay with which it is delivered, from 1; 0 means at once. How long a level is up to the
	// brokers, by default 1 is 1 s and 18 is 2 h.
	Delay int
	// Flag is free.
	Flag int32
}

// Sent is where a message was stored.
type Sent struct {
	// Queue and Offset are its place. The offset of a delayed message is among the delayed ones.
	Queue  pipeline.Queue
	Offset pipeline.Offset
	// ID is the message's id.
	ID string
	// Durable is false when the broker has stored the message but could not make it as safe as it promises: a disk or a slave
	// was too slow. Sending it again would make it two.
	Durable bool
}

// letter is a message as it is sent.
type letter struct {
	at      int // its index in a batch
	id, key string
	born    int64 // ms
	flag    int32
	sysFlag int32
	alone   bool // it cannot be in a batch
	props   record.Properties
	body    []byte
}

// propsRoom is left for the properties that brokers add.
const propsRoom = 512

// letter checks a message and encodes it. The error is [ErrInvalid] or [ErrTooLarge].
func (p *Producer) letter(m *Message) (*letter, error) {
	if len(m.Body) > p.options.MaxSize {
		return nil, fmt.Errorf("%w: the body has %d bytes, and Options.MaxSize allows %d (brokers: maxMessageSize)",
			ErrTooLarge, len(m.Body), p.options.MaxSize)
	}

	l := &letter{
		id: m.ID, key: m.Key, born: m.Born.UnixMilli(), flag: m.Flag, body: m.Body,
		alone: m.Delay != 0,
	}
	if l.id == "" {
		l.id = p.ids.next()
	}

	if m.Born.IsZero() {
		l.born = time.Now().UnixMilli()
	}

	props, err := properties(m, l.id)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}

	if len(l.body) == 0 {
		l.body, props[record.PropEmpty] = []byte(" "), "1"
	}

	if l.props = record.Join(props); len(l.props) > record.MaxProps-propsRoom {
		return nil, fmt.Errorf("%w: the properties have %d bytes, and RocketMQ allows %d", ErrTooLarge,
			len(l.props), record.MaxProps-propsRoom)
	}

	return l, p.compress(l)
}

// properties returns those of a message with RocketMQ's own.
func properties(m *Message, id string) (map[string]string, error) {
	if m.Delay < 0 {
		return nil, fmt.Errorf("the delay is of level %d; levels begin with 1", m.Delay)
	}

	for name := range m.Props {
		if field := owner(name); field != "" {
			return nil, fmt.Errorf("the property %s is RocketMQ's own; %s", name, field)
		}
	}

	props := make(map[string]string, len(m.Props)+4)
	maps.Copy(props, m.Props)

	props[record.PropUniqueKey] = id

	for name, value := range map[string]string{record.PropKeys: m.Key, record.PropTags: m.Tag} {
		if value != "" {
			props[name] = value
		}
	}

	if m.Delay > 0 {
		props[record.PropDelay] = strconv.Itoa(m.Delay)
	}

	for name, value := range props {
		if err := record.CheckProperty(name, value); err != nil {
			return nil, err //nolint:wrapcheck // letter does
		}

		props[name] = record.FillValue(value)
	}

	return props, nil
}

// owner returns what to do in place of setting a property that is not free, or "".
func owner(prop string) string {
	switch prop {
	case record.PropKeys:
		return "set Key"
	case record.PropTags:
		return "set Tag"
	case record.PropUniqueKey:
		return "set ID"
	case record.PropDelay:
		return "set Delay"
	case record.PropRetryTopic, record.PropOriginID, record.PropReconsumeTimes, record.PropMaxReconsumeTimes,
		record.PropRealTopic, record.PropRealQueue, record.PropInnerCount, record.PropInnerBase, "TRAN_MSG", "PGROUP":
		return "leave it out"
	default:
		return ""
	}
}

// compress makes the body smaller where that is wished and possible. Such a message is sent alone: in a batch there is one flag
// for all.
func (p *Producer) compress(l *letter) error {
	if p.options.CompressAbove < 0 || len(l.body) < p.options.CompressAbove {
		return nil
	}

	small, err := p.compressor.Compress(l.body)
	if err != nil {
		return fmt.Errorf("rocketmq: compress: %w", err)
	}

	if len(small) < len(l.body) {
		l.body, l.sysFlag, l.alone = small, p.options.Compression.SysFlag(), true
	}

	return nil
}

// size is what brokers count of it in a batch, about.
func (l *letter) size(topic string) int { return 100 + len(topic) + len(l.body) + len(l.props) }
