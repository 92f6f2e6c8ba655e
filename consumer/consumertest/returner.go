package consumertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

var errBroadcast = errors.New("consumertest: a broadcasting member returns nothing")

// SendBack implements consumer.Returner.
func (m *member) SendBack(ctx context.Context, back *pipeline.Message, delay time.Duration) error {
	call := m.call(OpSendBack, back.Origin.Queue)
	call.Delay = delay

	return m.handOver(ctx, call, back.Origin, func(r record) {
		r.message.Origin.Delivery++
		m.g.redeliver(r, delay)
	})
}

// DeadLetter implements consumer.Returner. The topic is created when there is none.
func (m *member) DeadLetter(ctx context.Context, dead *pipeline.Message, c consumer.Cause) error {
	call := m.call(OpDeadLetter, dead.Origin.Queue)
	call.Cause = c

	return m.handOver(ctx, call, dead.Origin, func(r record) {
		topic := c.Topic
		if topic == "" {
			topic = consumer.DeadLetterTopic(m.g.name)
		}

		for name, value := range c.Props(m.g.name, time.Now()) {
			r.message.SetProp(name, value)
		}

		r.message.Topic = topic
		r.message.Origin.Delivery = 1
		m.b.create(topic, 1)
		m.b.append(m.b.topics[topic][0], r)
	})
}

// handOver stores a copy of the record at an origin elsewhere, and counts the offset as finished. Once in the life of a
// group, whichever of the two calls it was.
func (m *member) handOver(ctx context.Context, call Call, origin pipeline.Origin, store func(record)) error {
	q, o := origin.Queue, origin.Offset
	call.Epoch, call.Offset = origin.Epoch, o

	return m.do(ctx, call, func(call *Call) error {
		if m.sub.Broadcast {
			return errBroadcast
		}

		log, err := m.b.log(q)
		if err != nil {
			return err
		}

		if consumer.ContainsRun(m.g.returned[q], o) {
			call.Repeated = true

			return nil
		}

		r := log.find(o)
		if r == nil {
			return fmt.Errorf("consumertest: %s holds no record at offset %d", q, o)
		}

		call.of(&r.message)
		store(returned(r))

		m.g.returned[q] = consumer.JoinRuns(append(slices.Clone(m.g.returned[q]), consumer.Run{From: o, To: o + 1}))

		return nil
	})
}

// returned returns a copy of a record that says where it comes from.
func returned(r *record) record {
	m := copyOf(&r.message)

	m.SetProp(consumer.PropOriginID, m.ID) // the same id and topic through all redeliveries
	m.SetProp(consumer.PropOriginTopic, m.Topic)
	m.SetProp(consumer.PropOriginQueue, m.Origin.Queue.String())
	m.SetProp(consumer.PropOriginOffset, strconv.FormatInt(int64(m.Origin.Offset), 10))

	return record{message: m, stored: time.Now()}
}

// redeliver puts a record into the retry topic when it is due.
func (g *group) redeliver(r record, delay time.Duration) {
	retry := g.b.topics[consumer.RetryTopic(g.name)]
	g.b.turn++
	log := retry[g.b.turn%len(retry)]

	if delay <= 0 {
		g.b.append(log, r)

		return
	}

	var timer *time.Timer

	timer = time.AfterFunc(delay, func() {
		g.b.mu.Lock()
		defer g.b.mu.Unlock()

		if _, ok := g.delayed[timer]; ok && !g.b.closed {
			delete(g.delayed, timer)
			r.stored = time.Now()
			g.b.append(log, r)
		}
	})
	g.delayed[timer] = struct{}{}
}
