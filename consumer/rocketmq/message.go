package rocketmq

import (
	"cmp"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/pipeline"
)

// Properties that RocketMQ's brokers set beside those that package record knows.
const (
	propDeadTopic = "DLQ_ORIGIN_TOPIC"
	propDeadID    = "DLQ_ORIGIN_MESSAGE_ID"
)

// message returns a record as the messages of jobs are.
func (m *member) message(held *lease, r *record.Record) *pipeline.Message {
	msg := &pipeline.Message{}
	m.fill(msg, held, r)

	return msg
}

// fill makes an empty message one of a record. It is the hot path: where a message has no properties of its own, it allocates
// nothing.
func (m *member) fill(msg *pipeline.Message, held *lease, r *record.Record) {
	msg.Topic, msg.Body, msg.Born = held.Queue.Topic, r.Body, time.UnixMilli(r.Born)
	msg.Origin = pipeline.Origin{
		Queue: held.Queue, Offset: pipeline.Offset(r.Offset), Epoch: held.Epoch, Delivery: r.Times + 1,
	}

	var unique, origin, first, dead string

	for name, value := range r.Props.All() { // brokers keep no empty values, so an empty string is one that was not there yet
		switch name {
		case record.PropUniqueKey:
			unique = cmp.Or(unique, value)
		case record.PropOriginID:
			origin = cmp.Or(origin, value)
		case record.PropKeys:
			msg.Key = cmp.Or(msg.Key, value)
		case record.PropTags:
			msg.Tag = cmp.Or(msg.Tag, value)
		case record.PropRetryTopic:
			first = cmp.Or(first, value)
		case propDeadTopic:
			dead = cmp.Or(dead, value)
		case record.PropEmpty:
			msg.Body = nil
		default:
			if _, found := msg.Props[name]; !found && !isSystem(name) {
				msg.SetProp(name, record.UnfillValue(value))
			}
		}
	}

	if msg.ID = cmp.Or(unique, origin); msg.ID == "" {
		msg.ID = r.OffsetID()
	}

	switch {
	case held.Queue.Topic == m.retry:
		// What was replayed says by a property of ours where it is from; a broker that takes it back then names the retry topic.
		if first = m.name(first); first == "" || first == m.retry {
			first = cmp.Or(msg.Props[consumer.PropOriginTopic], msg.Topic)
		}

		msg.Topic = first
	case strings.HasPrefix(held.Queue.Topic, consumer.DeadLetterTopic("")) && msg.Props[consumer.PropOriginID] == "":
		// A dead letter that its broker made, of a message whose consumer had given up.
		first = m.name(cmp.Or(first, dead))
	default:
		return
	}

	msg.SetProp(consumer.PropOriginID, msg.ID)

	if first != "" {
		msg.SetProp(consumer.PropOriginTopic, first)
	}
}

// isSystem reports whether a property is RocketMQ's own business, beside those that fill knows.
func isSystem(name string) bool {
	switch name {
	case record.PropDelay, record.PropWait, record.PropRealTopic, record.PropRealQueue, propDeadID,
		record.PropInnerCount, record.PropInnerBase, "CLUSTER", "MSG_REGION", "TRACE_ON":
		return true
	default:
		return false
	}
}
