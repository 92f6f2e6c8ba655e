package rocketmq

import (
	"context"
	"encoding/json"
	"fmt"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/loosejson"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// answer answers what brokers ask of the member. It runs on a goroutine of its own.
func (m *member) answer(ctx context.Context, _ string, request *remoting.Command) *remoting.Command {
	switch {
	case request.Code == remoting.NotifyConsumerChange && request.Ext[fieldGroup] == m.wire(m.group):
		nudge(m.look)
		nudge(m.peers)

		return &remoting.Command{}
	case request.Code == remoting.ResetClientOffset && request.Ext["group"] == m.wire(m.group):
		if err := m.pushedReset(ctx, request.Body); err != nil {
			m.log.Error("a reset is not followed", zap.Error(err))

			return &remoting.Command{Code: remoting.SystemError, Remark: err.Error()}
		}

		return &remoting.Command{}
	case request.Code == remoting.GetRunningInfo && request.Ext[fieldGroup] == m.wire(m.group):
		return &remoting.Command{Body: m.runningInfo()}
	case request.Code == remoting.GetClientStatus && request.Ext["group"] == m.wire(m.group):
		return &remoting.Command{Body: m.offsetTable(m.name(request.Ext["topic"]))}
	case request.Code == remoting.ConsumeDirectly && request.Ext[fieldGroup] == m.wire(m.group):
		return m.direct(ctx, request)
	default:
		return nil
	}
}

// pushedReset follows an administrator who sets offsets, as brokers of version 4 tell it: they leave it to the members to
// store the offsets.
func (m *member) pushedReset(ctx context.Context, body []byte) error {
	offsets, err := readOffsetTable(body)
	if err != nil {
		return err
	}

	for q, target := range offsets {
		q.Topic = m.name(q.Topic)

		m.mu.Lock()
		held := m.leases[q]
		m.mu.Unlock()

		if held != nil && target >= 0 && held.over() == nil {
			_ = m.followReset(ctx, held, target) // it tells whoever pulls to begin again
		}
	}

	return nil
}

// javaQueue is a queue as RocketMQ's own code writes it.
type javaQueue struct {
	Broker string          `json:"brokerName"`
	Queue  int             `json:"queueId"`
	Topic  string          `json:"topic"`
	Offset pipeline.Offset `json:"offset,omitempty"`
}

func (q javaQueue) queue() pipeline.Queue {
	return pipeline.Queue{Topic: q.Topic, Broker: q.Broker, ID: q.Queue}
}

// readOffsetTable reads {"offsetTable":{queue:offset}} or {"offsetTable":[queue with offset]}.
func readOffsetTable(body []byte) (map[pipeline.Queue]pipeline.Offset, error) {
	strict, err := loosejson.Strict(body)
	if err != nil {
		return nil, fmt.Errorf("rocketmq: %w", err)
	}

	var table struct {
		Offsets json.RawMessage `json:"offsetTable"`
	}

	if err := json.Unmarshal(strict, &table); err != nil {
		return nil, fmt.Errorf("rocketmq: table of offsets: %w", err)
	}

	offsets := map[pipeline.Queue]pipeline.Offset{}

	var list []javaQueue
	if json.Unmarshal(table.Offsets, &list) == nil {
		for _, q := range list {
			offsets[q.queue()] = q.Offset
		}

		return offsets, nil
	}

	var byKey map[string]pipeline.Offset
	if err := json.Unmarshal(table.Offsets, &byKey); err != nil {
		return nil, fmt.Errorf("rocketmq: table of offsets: %w", err)
	}

	for key, offset := range byKey {
		var q javaQueue
		if err := json.Unmarshal([]byte(key), &q); err != nil {
			return nil, fmt.Errorf("rocketmq: table of offsets, key %q: %w", key, err)
		}

		offsets[q.queue()] = offset
	}

	return offsets, nil
}
