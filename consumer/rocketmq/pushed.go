package rocketmq

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// answer answers what brokers ask of the member. It runs on a goroutine of its own.
func (m *member) answer(ctx context.Context, _ string, request *remoting.Command) *remoting.Command {
	group := request.Ext["consumerGroup"]
	if group == "" {
		group = request.Ext["group"]
	}

	if m.routes.space.unwrap(group) != m.group {
		return nil
	}

	switch request.Code {
	case remoting.NotifyConsumerChange:
		nudge(m.look)

		return &remoting.Command{}
	case remoting.ResetClientOffset:
		return m.pushedReset(ctx, request)
	case remoting.GetClientStatus:
		return m.status(request)
	case remoting.GetRunningInfo:
		return &remoting.Command{Body: m.runningInfo()}
	default:
		return nil
	}
}

// pushedReset follows an administrator who sets offsets, as brokers of version 4 tell it.
func (m *member) pushedReset(ctx context.Context, request *remoting.Command) *remoting.Command {
	offsets, err := readOffsetTable(request.Body)
	if err != nil {
		m.log.Error("a reset that cannot be read is not followed", zap.Error(err))

		return &remoting.Command{Code: remoting.SystemError, Remark: err.Error()}
	}

	for q, target := range offsets {
		q.Topic = m.routes.space.unwrap(q.Topic)

		m.mu.Lock()
		held := m.leases[q]
		m.mu.Unlock()

		if held == nil || target < 0 {
			continue
		}

		held.committing.Lock()
		err := m.reset(ctx, held, target)
		held.committing.Unlock()

		if err != nil {
			m.log.Error("a reset is not followed", zap.Stringer("queue", q), zap.Error(err))

			return &remoting.Command{Code: remoting.SystemError, Remark: err.Error()}
		}
	}

	return &remoting.Command{}
}

// snapshot returns the present leases, sorted by their queues.
func (m *member) snapshot() []*lease {
	m.mu.Lock()
	defer m.mu.Unlock()

	held := make([]*lease, 0, len(m.leases))
	for _, l := range m.owned() {
		held = append(held, m.leases[l.Queue])
	}

	return held
}

// status tells how far the member is in the queues of a topic, in the JSON of RocketMQ's own code.
func (m *member) status(request *remoting.Command) *remoting.Command {
	topic := m.routes.space.unwrap(request.Ext["topic"])

	var entries []string

	for _, l := range m.snapshot() {
		if topic == "" || l.Queue.Topic == topic {
			entries = append(entries, m.looseKey(l.Queue)+":"+strconv.FormatInt(l.committed.Load(), 10))
		}
	}

	return &remoting.Command{Body: []byte(`{"messageQueueTable":{` + strings.Join(entries, ",") + `}}`)}
}

// looseKey is a queue as a key of RocketMQ's JSON.
func (m *member) looseKey(q pipeline.Queue) string {
	return string(encode(struct {
		Broker string `json:"brokerName"`
		Queue  int    `json:"queueId"`
		Topic  string `json:"topic"`
	}{q.Broker, q.ID, m.routes.space.wrap(q.Topic)}))
}

// runningInfo tells RocketMQ's consoles about the member; mqadmin consumerStatus prints it.
func (m *member) runningInfo() []byte {
	properties := encode(map[string]string{
		"PROP_NAMESERVER_ADDR":          strings.Join(m.routes.servers, ";"),
		"PROP_CONSUME_TYPE":             "CONSUME_PASSIVELY",
		"PROP_CLIENT_VERSION":           "V5_3_3",
		"PROP_CONSUMEORDERLY":           strconv.FormatBool(m.options.Orderly),
		"PROP_THREADPOOL_CORE_SIZE":     "0",
		"PROP_CONSUMER_START_TIMESTAMP": strconv.FormatInt(m.started.UnixMilli(), 10),
	})

	var queues, topics []string

	for _, l := range m.snapshot() {
		queues = append(queues, m.looseKey(l.Queue)+":"+m.queueInfo(l))
	}

	subscriptions := make([]subscription, 0, len(m.topics)+1)

	for _, topic := range m.everything() {
		subscriptions = append(subscriptions, m.subscription(topic))
		topics = append(topics, string(encode(topic))+`:{"pullRT":0.0,"pullTPS":0.0,"consumeRT":0.0,"consumeOKTPS":0.0,`+
			`"consumeFailedTPS":0.0,"consumeFailedMsgs":0}`)
	}

	slices.Sort(topics)

	return fmt.Appendf(nil, `{"properties":%s,"subscriptionSet":%s,"mqTable":{%s},"mqPopTable":{},"statusTable":{%s},`+
		`"userConsumerInfo":{}}`, properties, encode(subscriptions), strings.Join(queues, ","), strings.Join(topics, ","))
}

// queueInfo is what is known of one queue here; how many messages wait inside the job is the job's own business.
func (m *member) queueInfo(l *lease) string {
	return string(encode(map[string]any{
		"commitOffset": l.committed.Load(), "cachedMsgMinOffset": 0, "cachedMsgMaxOffset": 0, "cachedMsgCount": 0,
		"cachedMsgSizeInMiB": 0, "transactionMsgMinOffset": 0, "transactionMsgMaxOffset": 0, "transactionMsgCount": 0,
		"locked": m.options.Orderly, "tryUnlockTimes": 0, "lastLockTimestamp": 0,
		"droped": false, // the protocol's spelling
		"lastPullTimestamp": l.pulled.Load(), "lastConsumeTimestamp": l.pulled.Load(),
	}))
}
