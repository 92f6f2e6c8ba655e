package rocketmqfake

import (
	"cmp"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/record"
)

const (
	permWrite = 2
	permRead  = 4
)

// topic is a topic at one broker.
type topic struct {
	read, write, perm int
	queues            []*queue
}

// queue is one queue of a topic.
type queue struct {
	min     int64      // offset of the first record
	records []*message // dense from min
	held    []*held    // pulls that wait for messages
}

func (q *queue) max() int64 { return q.min + int64(len(q.records)) }

func (t *topic) configure(read, write, perm int) *topic {
	t.read, t.write, t.perm = read, write, perm
	for len(t.queues) < max(read, write) {
		t.queues = append(t.queues, &queue{})
	}

	return t
}

// topic returns a topic to configure, which may be new.
func (b *Broker) topic(name string) *topic { return cmp.Or(b.topics[name], &topic{}) }

// ensure returns a topic that brokers make themselves when it is missing.
func (b *Broker) ensure(name string, queues int) *topic {
	if b.topics[name] == nil {
		b.topics[name] = new(topic).configure(queues, queues, permRead|permWrite)
	}

	return b.topics[name]
}

// at returns a queue, or nil when there is none.
func (b *Broker) at(name string, id int64) *queue {
	t := b.topics[name]
	if t == nil || id < 0 || id >= int64(len(t.queues)) {
		return nil
	}

	return t.queues[id]
}

// Records returns what is stored in a topic, at all brokers, without what was trimmed and what is still delayed.
func (c *Cluster) Records(topic string) []*record.Record {
	c.mu.Lock()
	defer c.mu.Unlock()

	var all []*record.Record

	for _, b := range c.Brokers {
		if t := b.topics[topic]; t != nil {
			for _, q := range t.queues {
				for _, m := range q.records {
					all = append(all, m.record())
				}
			}
		}
	}

	return all
}

// store appends a record to its queue and answers the pulls that wait for it.
func (b *Broker) store(m *message) {
	q := b.at(m.topic, int64(m.queue))
	if q == nil { // deleted while the message was delayed
		return
	}

	m.offset, m.physical, m.stored, m.host = q.max(), b.end, time.Now(), b.host
	b.end += int64(m.size())
	b.log[m.physical] = m
	q.records = append(q.records, m)

	waiting := q.held
	q.held = nil

	for _, h := range waiting {
		if h.filter.matches(m) {
			b.release(q, h)
		} else {
			q.held = append(q.held, h)
		}
	}
}
