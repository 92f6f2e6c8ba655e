package rocketmqfake

import (
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// lock is the hold of one member on one queue.
type lock struct {
	owner   string
	expires time.Time
}

func (k lock) holds() bool { return k.owner != "" && time.Now().Before(k.expires) }

type messageQueue struct {
	BrokerName string `json:"brokerName"`
	QueueID    int64  `json:"queueId"`
	Topic      string `json:"topic"`
}

// lockQueues locks what nobody else holds, or unlocks what the caller does.
func (b *Broker) lockQueues(r *remoting.Command) *remoting.Command {
	var request struct {
		Group    string         `json:"consumerGroup"`
		ClientID string         `json:"clientId"`
		Queues   []messageQueue `json:"mqSet"`
	}

	if bad := decodeBody(r, &request); bad != nil {
		return bad
	}

	locked := []messageQueue{}

	for _, mq := range request.Queues {
		key := groupQueue{request.Group, mq.Topic, mq.QueueID}
		held := b.locks[key]
		mine := held.owner == request.ClientID

		switch {
		case r.Code == remoting.UnlockQueues:
			if mine {
				delete(b.locks, key)
			}
		case mine || !held.holds():
			b.locks[key] = lock{request.ClientID, time.Now().Add(time.Minute)}
			locked = append(locked, mq)
		}
	}

	if r.Code == remoting.UnlockQueues {
		return ok(nil, nil)
	}

	return asJSON(map[string]any{"lockOKMQSet": locked})
}
