package rocketmq

import (
	"cmp"
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
	props := r.Props.Map()
	msg := &pipeline.Message{
		ID:    cmp.Or(props[record.PropUniqueKey], props[record.PropOriginID], r.OffsetID()),
		Topic: held.Queue.Topic, Key: props[record.PropKeys], Tag: props[record.PropTags], Body: r.Body,
		Born: time.UnixMilli(r.Born),
		Origin: pipeline.Origin{
			Queue: held.Queue, Offset: pipeline.Offset(r.Offset), Epoch: held.Epoch, Delivery: r.Times + 1,
		},
	}

	if props[record.PropEmpty] != "" {
		msg.Body = nil
	}

	if first := props[record.PropRetryTopic]; first != "" && held.Queue.Topic == m.retry {
		msg.Topic = m.name(first)
	}

	for name, value := range props {
		if isSystem(name) {
			delete(props, name)
		} else {
			props[name] = record.UnfillValue(value)
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
		record.PropWait, record.PropRealTopic, record.PropRealQueue, propDeadTopic, propDeadID, record.PropInnerCount, record.PropInnerBase,
		record.PropEmpty, "CLUSTER", "MSG_REGION", "TRACE_ON":
		return true
	default:
		return false
	}
}
