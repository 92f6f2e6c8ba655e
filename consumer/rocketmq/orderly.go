package rocketmq

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// How queues are locked. A broker forgets a lock after a minute without a renewal.
const (
	// lockAgain is how soon a queue that somebody else still has is asked for again.
	lockAgain = 500 * time.Millisecond
	// renewLocks is how often locks are renewed.
	renewLocks = 20 * time.Second
	// lockLost is how long a lock that cannot be renewed is trusted.
	lockLost = 30 * time.Second
	// patience is how long a queue that was taken away waits for its release.
	patience = 10 * time.Second
)

// lockRequest is the body of a request to lock or unlock.
type lockRequest struct {
	Group  string      `json:"consumerGroup"`
	Client string      `json:"clientId"`
	Only   bool        `json:"onlyThisBroker"`
	Queues []javaQueue `json:"mqSet"`
}

// secure renews the locks of the queues that we own and asks for those of the new ones. It leaves of the shares what the
// brokers granted, ends the leases whose locks were lost, and returns when to look again.
func (m *member) secure(ctx context.Context, shares map[string][]pipeline.Queue) time.Duration {
	m.giveUp(ctx)

	pause := renewLocks
	asked := time.Now()
	locks := m.lockAll(ctx, m.wanted(shares))

	for topic, share := range shares {
		shares[topic] = slices.DeleteFunc(slices.Clone(share), func(q pipeline.Queue) bool {
			granted, answered := locks[q]
			held := m.claim(q, granted, answered, asked)

			if !held {
				pause = lockAgain
			}

			return !held
		})
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	if len(m.leaving) > 0 {
		pause = lockAgain
	}

	return pause
}

// wanted returns the queues whose locks we need: the shares, and what we own of topics whose members are not known now.
func (m *member) wanted(shares map[string][]pipeline.Queue) []pipeline.Queue {
	m.mu.Lock()
	defer m.mu.Unlock()

	var wanted []pipeline.Queue

	for _, share := range shares {
		for _, q := range share {
			if m.leaving[q] == nil { // it is given back only when its former work has ended
				wanted = append(wanted, q)
			}
		}
	}

	for q, l := range m.leases {
		if _, looked := shares[q.Topic]; !looked || !slices.Contains(shares[q.Topic], q) {
			wanted = append(wanted, l.Queue)
		}
	}

	return wanted
}

// claim reports whether a queue of our share is ours by its lock.
func (m *member) claim(q pipeline.Queue, granted, answered bool, asked time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	l := m.leases[q]

	switch {
	case granted:
		if l != nil {
			l.lockedAt = asked
		}

		return true
	case l == nil, m.cause != nil: // the end of the membership has ended its leases, too
		return false
	case !answered && time.Since(l.lockedAt) < lockLost: // the broker may be away for a moment
		return true
	default:
		m.log.Error("the lock of a queue cannot be renewed; giving the queue up", zap.Stringer("queue", q))
		delete(m.leases, q)
		l.end(consumer.ErrNotOwner)
		m.bump()

		return false
	}
}

// lockAll asks the brokers to lock queues and returns which they granted; those of brokers that did not answer are missing.
func (m *member) lockAll(ctx context.Context, queues []pipeline.Queue) map[pipeline.Queue]bool {
	granted := map[pipeline.Queue]bool{}

	for broker, some := range byBroker(queues) {
		// One under way is waited for, see Leave: carried out after the unlocking it would keep the next owner out.
		answer, err := m.lockCall(context.WithoutCancel(ctx), remoting.LockQueues, broker, some)
		if err != nil {
			if ctx.Err() == nil {
				m.log.Warn("a broker does not lock queues", zap.String("broker", broker), zap.Error(err))
			}

			continue
		}

		var locked struct {
			Queues []javaQueue `json:"lockOKMQSet"` //nolint:tagliatelle // the protocol's spelling
		}

		if err := json.Unmarshal(answer.Body, &locked); err != nil {
			m.log.Warn("a broker answers a lock with what is no list", zap.String("broker", broker), zap.Error(err))
		}

		for _, q := range some {
			granted[q] = false
		}

		for _, q := range locked.Queues {
			granted[pipeline.Queue{Topic: m.name(q.Topic), Broker: q.Broker, ID: q.Queue}] = true
		}
	}

	return granted
}

func byBroker(queues []pipeline.Queue) map[string][]pipeline.Queue {
	groups := map[string][]pipeline.Queue{}
	for _, q := range queues {
		groups[q.Broker] = append(groups[q.Broker], q)
	}

	return groups
}

// lockCall locks or unlocks queues of one broker.
func (m *member) lockCall(
	ctx context.Context, code int, broker string, queues []pipeline.Queue,
) (*remoting.Command, error) {
	addr, err := m.routes.Master(ctx, queues[0])
	if err != nil {
		return nil, err //nolint:wrapcheck // of the same family
	}

	body := lockRequest{Group: m.wire(m.group), Client: m.id}
	for _, q := range queues {
		body.Queues = append(body.Queues, javaQueue{Broker: broker, Queue: q.ID, Topic: m.wire(q.Topic)})
	}

	return m.call(ctx, addr, &remoting.Command{Code: code, Body: encode(body)})
}

// giveUp ends the leases of queues that were taken away and not released in time.
func (m *member) giveUp(ctx context.Context) {
	var late []pipeline.Queue

	m.mu.Lock()

	for q, l := range m.leaving {
		if time.Now().After(l.doomed) {
			m.log.Warn("a queue was not released in time; giving it up", zap.Stringer("queue", q))
			l.end(consumer.ErrNotOwner)
			delete(m.leaving, q)

			late = append(late, q)
		}
	}
	m.mu.Unlock()

	if err := m.unlock(ctx, late); err != nil && ctx.Err() == nil {
		m.log.Warn("a queue is not unlocked; its broker does that after a minute", zap.Error(err))
	}
}

// unlockRest unlocks everything at the end of the membership.
func (m *member) unlockRest(ctx context.Context) {
	m.mu.Lock()

	var rest []pipeline.Queue

	for q := range m.leases {
		rest = append(rest, q)
	}

	for q := range m.leaving {
		rest = append(rest, q)
	}
	m.mu.Unlock()

	if err := m.unlock(ctx, rest); err != nil {
		m.log.Warn("queues are not unlocked; their brokers do that after a minute", zap.Error(err))
	}
}

// unlock unlocks queues that are not ours any more.
func (m *member) unlock(ctx context.Context, queues []pipeline.Queue) error {
	for broker, some := range byBroker(queues) {
		if _, err := m.lockCall(ctx, remoting.UnlockQueues, broker, some); err != nil {
			return fmt.Errorf("rocketmq: unlock %v: %w", some, err)
		}
	}

	return nil
}
