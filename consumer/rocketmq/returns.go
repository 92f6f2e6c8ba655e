package rocketmq

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// unlimited is the most deliveries that brokers are told: how many there are is decided by the job, which also says why a
// message is dead.
const unlimited = math.MaxInt32

// parked is the level of delay that means the dead letters.
const parked = -1

// SendBack gives a message back to be delivered again; see [consumer.Returner]. It waits for the first of the brokers' delays
// that is long enough, at least for the shortest.
func (m *member) SendBack(ctx context.Context, msg *pipeline.Message, delay time.Duration) error {
	return m.giveBack(ctx, msg.Origin, func(ctx context.Context, held *lease, r *original, master string) error {
		level := m.level(delay)
		if r.batched {
			return m.resend(ctx, held, r, master, level)
		}

		err := m.sendBack(ctx, held, r, master, level)
		if routes.Code(err) < 0 || m.orderly {
			return err // it is done, or may be; and while queues are locked, retry topics only lead to the dead letters
		}

		m.log.Warn("a broker does not take a message back; writing it to the retry topic instead",
			zap.Stringer("queue", held.Queue), zap.Int64("offset", r.Offset), zap.Error(err))

		return m.resend(ctx, held, r, master, level)
	})
}

// sendBack has the broker copy a record to where its group gets it again after a delay, or with the level parked to the
// group's dead letters.
func (m *member) sendBack(ctx context.Context, held *lease, r *original, master string, level int) error {
	_, err := m.call(ctx, master, &remoting.Command{Code: remoting.SendMessageBack, Ext: map[string]string{
		"offset": strconv.FormatInt(r.Physical, 10), "group": m.wire(m.group), "delayLevel": strconv.Itoa(level),
		"originMsgId": r.OffsetID(), "originTopic": m.wire(held.Queue.Topic), "unitMode": no,
		"maxReconsumeTimes": strconv.Itoa(unlimited), "bname": held.Queue.Broker,
	}})
	if err != nil {
		return m.calledFor(held.Queue, "send back", err)
	}

	return nil
}

// level returns the number of the first delay that is long enough, or of the longest.
func (m *member) level(delay time.Duration) int {
	for i, d := range m.options.DelayLevels {
		if d >= delay {
			return i + 1
		}
	}

	return len(m.options.DelayLevels)
}

// resend writes a message that a broker does not take back to the group's retry topic, at its own broker or at any other.
func (m *member) resend(ctx context.Context, held *lease, r *original, master string, level int) error {
	again := m.copyOf(r, m.retry)
	again.times = r.Times + 1
	again.props[record.PropRetryTopic] = m.wire(held.Queue.Topic)
	again.props[record.PropOriginID] = r.OffsetID()

	for _, name := range []string{record.PropRetryTopic, record.PropOriginID} {
		if first, found := r.Props.Get(name); found {
			again.props[name] = first
		}
	}

	again.props[record.PropDelay] = strconv.Itoa(level)
	_, err := m.send(ctx, master, again)

	known, failed := m.routes.Of(ctx, m.retry)
	if failed != nil {
		return err
	}

	for _, addr := range known.Masters() {
		if err == nil || ctx.Err() != nil {
			break
		}

		if addr != master {
			_, err = m.send(ctx, addr, again)
		}
	}

	return err
}

// DeadLetter parks a message with its cause; see [consumer.Returner]. A topic that there is not is made, with one queue.
func (m *member) DeadLetter(ctx context.Context, msg *pipeline.Message, c consumer.Cause) error {
	topic := c.Topic
	if topic == "" {
		topic = consumer.DeadLetterTopic(m.group)
	}

	if err := routes.CheckTopic(topic); err != nil {
		return err //nolint:wrapcheck // of the same family
	}

	return m.giveBack(ctx, msg.Origin, func(ctx context.Context, held *lease, r *original, master string) error {
		dead := m.copyOf(r, topic)
		from := m.message(held, &r.Record)

		maps.Copy(dead.props, map[string]string{
			consumer.PropOriginID:     from.ID,
			consumer.PropOriginTopic:  from.Topic,
			consumer.PropOriginQueue:  held.Queue.String(),
			consumer.PropOriginOffset: strconv.FormatInt(r.Offset, 10),
			propDeadTopic:             m.wire(from.Topic),
			propDeadID:                r.OffsetID(),
		})

		for name, value := range c.Props(m.group, time.Now()) {
			dead.props[name] = plain(value)
		}

		err := m.bury(ctx, held, master, dead)
		if routes.Code(err) < 0 || c.Topic != "" || r.batched {
			return err
		}

		m.log.Warn("a broker does not take a dead letter; leaving it to the broker, without the cause",
			zap.Stringer("queue", held.Queue), zap.Int64("offset", r.Offset), zap.Error(err))

		return m.sendBack(ctx, held, r, master, parked)
	})
}

// plain returns a text as a property can hold it: without the two characters that separate properties.
func plain(text string) string {
	return strings.Map(func(c rune) rune {
		if c == 1 || c == 2 {
			return ' '
		}

		return c
	}, text)
}

// bury writes a dead letter, to its message's own broker if that has the topic or no broker has.
func (m *member) bury(ctx context.Context, held *lease, master string, dead letter) error {
	known, err := m.routes.Of(ctx, dead.topic)
	if err != nil {
		if err := m.createTopic(ctx, master, dead.topic, 1); err != nil {
			return err
		}

		_, err := m.send(ctx, master, dead)

		return err
	}

	masters := known.Masters()
	if addr, found := masters[held.Queue.Broker]; found {
		_, err := m.send(ctx, addr, dead)

		return err
	}

	err = fmt.Errorf("%w: no broker of topic %q has a master", ErrUnreachable, dead.topic)

	for _, addr := range masters {
		if _, err = m.send(ctx, addr, dead); err == nil {
			break
		}
	}

	return err
}

// copyOf returns a record as a new message of another topic.
func (m *member) copyOf(r *original, topic string) letter {
	l := letter{
		topic: topic, queue: -1, queues: 1, flag: r.Flag, born: r.Born, body: r.Body, props: r.Props.Map(),
	}

	if l.props[record.PropUniqueKey] == "" { // the copy's place must not become its id
		l.props[record.PropUniqueKey] = cmp.Or(l.props[record.PropOriginID], r.OffsetID())
	}

	for _, name := range []string{
		record.PropDelay, record.PropRetryTopic, record.PropRealTopic, record.PropRealQueue, record.PropOriginID, record.PropWait,
		record.PropInnerCount, record.PropInnerBase,
	} {
		delete(l.props, name)
	}

	return l
}

// giveBack finds the record at an origin and the master of its broker, for put to store a copy of it.
func (m *member) giveBack(
	ctx context.Context, from pipeline.Origin, put func(ctx context.Context, held *lease, r *original, master string) error,
) error {
	held, err := m.lease(from.Queue, from.Epoch)
	if err != nil {
		return err
	}

	if m.broadcast {
		return fmt.Errorf("%w: %s at %d cannot be given back", ErrBroadcast, from.Queue, from.Offset)
	}

	under, done := held.during(ctx)
	defer done()

	r, err := m.peek(under, held, from.Offset)
	if err != nil {
		return held.blame(ctx, err)
	}

	master, err := m.routes.Master(under, from.Queue)
	if err != nil {
		return err //nolint:wrapcheck // of the same family
	}

	if err := put(under, held, r, master); err != nil {
		return held.blame(ctx, err)
	}

	return nil
}
