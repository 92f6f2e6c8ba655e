package rocketmq

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer"
)

// queueInfo is what an administrator is told of a queue. What Java calls cached is what was pulled and is not committed yet:
// mqadmin takes a queue with some of that for blocked when its lastConsumeTimestamp, here that of the last commit, is more than
// a minute ago.
type queueInfo struct {
	Committed   int64 `json:"commitOffset"`
	First       int64 `json:"cachedMsgMinOffset"`
	Last        int64 `json:"cachedMsgMaxOffset"`
	Count       int64 `json:"cachedMsgCount"`
	Locked      bool  `json:"locked"`
	LockedAt    int64 `json:"lastLockTimestamp"`
	Dropped     bool  `json:"droped"` // the protocol's spelling
	PulledAt    int64 `json:"lastPullTimestamp"`
	CommittedAt int64 `json:"lastConsumeTimestamp"`
}

// runningInfo is what the member says of itself when mqadmin's consumerStatus or a console asks. Queues are keys there, as
// objects, which is no JSON, but what RocketMQ's own code reads.
func (m *member) runningInfo() []byte {
	var (
		subscriptions []subscription
		queues        []string
	)

	for _, topic := range m.everything() {
		subscriptions = append(subscriptions, m.subscription(topic))
	}

	m.mu.Lock()
	leases := slices.SortedFunc(maps.Values(m.leases), func(a, b *lease) int { return consumer.CompareQueues(a.Queue, b.Queue) })

	for _, l := range leases {
		q := l.Queue
		queues = append(queues, fmt.Sprintf("%s:%s", encode(javaQueue{Broker: q.Broker, Queue: q.ID, Topic: m.wire(q.Topic)}),
			encode(m.queueInfo(l))))
	}
	m.mu.Unlock()

	const form = `{"properties":%s,"subscriptionSet":%s,"mqTable":{%s},"mqPopTable":{},"statusTable":{},"userConsumerInfo":{}}`

	return fmt.Appendf(nil, form,
		encode(map[string]string{
			"PROP_NAMESERVER_ADDR": strings.Join(m.options.NameServers, ";"), "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
			"PROP_CLIENT_VERSION": "millrace", "PROP_CONSUMEORDERLY": strconv.FormatBool(m.orderly),
			"PROP_CONSUMER_START_TIMESTAMP": strconv.FormatInt(m.began.UnixMilli(), 10),
		}), encode(subscriptions), strings.Join(queues, ","))
}

// queueInfo is what there is to say of one queue. member.mu is held.
func (m *member) queueInfo(l *lease) queueInfo {
	p := &l.progress
	info := queueInfo{
		Committed: p.committed.Load(), Locked: m.orderly, Dropped: l.over() != nil,
		PulledAt: p.pulledAt.Load(), CommittedAt: p.committedAt.Load(),
	}

	if m.orderly {
		info.LockedAt = l.lockedAt.UnixMilli()
	}

	if next := p.next.Load(); next > info.Committed {
		info.First, info.Last, info.Count = info.Committed, next-1, next-info.Committed
	}

	return info
}

// offsetTable is how far the member is in its queues of a topic, as consoles ask for it, in the same dialect. A queue that has
// not been pulled yet is not in it.
func (m *member) offsetTable(topic string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()

	var queues []string

	for q, l := range m.leases {
		if q.Topic == topic && l.progress.pulledAt.Load() > 0 {
			queues = append(queues, fmt.Sprintf("%s:%d",
				encode(javaQueue{Broker: q.Broker, Queue: q.ID, Topic: m.wire(q.Topic)}), l.progress.committed.Load()))
		}
	}

	slices.Sort(queues)

	return fmt.Appendf(nil, `{"messageQueueTable":{%s}}`, strings.Join(queues, ","))
}
