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
	propDeadTopic  = "DLQ_ORIGIN_TOPIC"
	propDeadID     = "DLQ_ORIGIN_MESSAGE_ID"
	propInnerCount = "INNER_NUM"
	propInnerBase  = "INNER_BASE"
)

// propEmpty marks a message whose body is empty, which brokers do not take: there is something in its place.
const propEmpty = "millrace.empty"

// filled returns a property's value as it was published. Brokers drop empty values, so that a value of nothing but NULs, the
// empty one included, is published with one more.
func filled(value string) string {
	if strings.Trim(value, "\x00") == "" {
		return strings.TrimPrefix(value, "\x00")
	}

	return value
}

// message returns a record as the messages of jobs are.
func (m *member) message(held *lease, r *record.Record) *pipeline.Message {
	props := r.Props.Map()
	msg := &pipeline.Message{
		ID:    cmp.Or(props[record.PropUniqueKey], props[record.PropOriginID], r.OffsetID()),
		Topic: held.Queue.Topic, Key: props[record.PropKeys], Tag: props[record.PropTags], Body: r.Body,
		Born: time.UnixMilli(r.Born),
		Origin: pipeline.Origin{
			Queue: held.Queue, Offset: pipeline.Offset(r.Offset), Epoch: held.Epoch, Delivery: r.Times + 1,
		},
	}

	if props[propEmpty] != "" {
		msg.Body = nil
	}

	if first := props[record.PropRetryTopic]; first != "" && held.Queue.Topic == m.retry {
		msg.Topic = m.name(first)
	}

	for name, value := range props {
		if isSystem(name) {
			delete(props, name)
		} else {
			props[name] = filled(value)
		}
	}

	msg.Props = props

	if held.Queue.Topic == m.retry {
		msg.SetProp(consumer.PropOriginID, msg.ID)
		msg.SetProp(consumer.PropOriginTopic, msg.Topic)
	}

	return msg
}

// isSystem reports whether a property is RocketMQ's own business.
func isSystem(name string) bool {
	switch name {
	case record.PropUniqueKey, record.PropKeys, record.PropTags, record.PropDelay, record.PropRetryTopic, record.PropOriginID,
		record.PropWait, record.PropRealTopic, record.PropRealQueue, propDeadTopic, propDeadID, propInnerCount, propInnerBase,
		propEmpty, "CLUSTER", "MSG_REGION", "TRACE_ON":
		return true
	default:
		return false
	}
}
