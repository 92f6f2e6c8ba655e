package rocketmqfake

import (
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const (
	defaultRetries = 16

	maxBody  = 4 << 20
	maxProps = 1<<15 - 1

	yes         = "true"
	region      = "DefaultRegion"
	clusterName = "C"
)

func isSend(code int) bool {
	return code == remoting.SendMessage || code == remoting.SendMessageV2 || code == remoting.SendMessageBatch
}

// longNames turns the one-letter fields of the newer requests into the ones of the first.
func longNames(r *remoting.Command) *fields {
	if r.Code == remoting.SendMessage {
		return fieldsOf(r)
	}

	f := &fields{ext: map[string]string{}}

	for short, long := range map[string]string{
		"a": "producerGroup", "b": "topic", "c": "defaultTopic", "d": "defaultTopicQueueNums", "e": "queueId", "f": "sysFlag",
		"g": "bornTimestamp", "h": "flag", "i": "properties", "j": "reconsumeTimes", "l": "maxReconsumeTimes", "m": "batch",
	} {
		if value, found := r.Ext[short]; found {
			f.ext[long] = value
		}
	}

	return f
}

// send stores a message or a batch of them.
func (b *Broker) send(r *remoting.Command) *remoting.Command {
	f := longNames(r)
	m := &message{
		topic: f.text("topic"), queue: int(f.number("queueId")), sysFlag: int32(f.number("sysFlag")),
		born: f.number("bornTimestamp"), flag: int32(f.number("flag")), times: int32(f.optional("reconsumeTimes", 0)),
		props: record.Properties(f.ext["properties"]).Map(), body: r.Body,
	}
	queues, most := f.number("defaultTopicQueueNums"), f.optional("maxReconsumeTimes", defaultRetries)

	if bad := f.failed(); bad != nil {
		return bad
	}

	// Neither a topic nor a broker that is for reading only refuses a message: the route tells producers to stay away.
	if refusal := b.target(m, queues, most); refusal != nil {
		return refusal
	}

	if len(m.body) == 0 {
		return fail(remoting.SystemError, "message body is empty")
	}

	if len(m.body) > maxBody || len(f.ext["properties"]) > maxProps {
		return fail(remoting.MessageIllegal, "the message is illegal, maybe msg body or properties length not matched.")
	}

	if r.Code == remoting.SendMessageBatch || f.ext["batch"] == yes {
		return b.sendBatch(m)
	}

	return b.stored(m, []string{b.accept(m)})
}

// target decides where a message goes; what it returns is the answer when there is no such place.
func (b *Broker) target(m *message, queues, most int64) *remoting.Command {
	t := b.topics[m.topic]

	group, retry := strings.CutPrefix(m.topic, retryMark)
	if retry {
		if b.admit(group) == nil {
			return fail(remoting.GroupNotExist, "subscription group not exist, %s", group)
		}

		if t = b.ensure(m.topic, 1); int64(m.times) > most || b.locked(group) {
			m.topic, m.queue = deadMark+group, 0
			t = b.ensure(m.topic, 1)
			m.props[record.PropDelay] = "-1"
		}
	}

	if t == nil {
		if b.cluster.options.NoAutoCreate {
			return fail(remoting.TopicNotExist, "topic[%s] not exist, apply first please!", m.topic)
		}

		t = b.ensure(m.topic, int(min(max(queues, 1), 8)))
	}

	if m.queue < 0 {
		m.queue = b.cluster.random.IntN(t.write)
	}

	if m.queue >= max(t.write, t.read) {
		return fail(remoting.InvalidParameter, "request queueId[%d] is illegal", m.queue)
	}

	return nil
}

// locked reports whether a member of the group holds any queue of this broker.
func (b *Broker) locked(group string) bool {
	for key, held := range b.locks {
		if key.group == group && held.holds() {
			return true
		}
	}

	return false
}

// accept stores a message now, or when its delay is over, and returns its id.
func (b *Broker) accept(m *message) string {
	level, err := strconv.Atoi(m.props[record.PropDelay])
	if err != nil || level <= 0 {
		b.store(m)

		return m.id()
	}

	b.delay(m, level)

	return m.id()
}

// delay keeps a message until its delay is over. It has a place in the log meanwhile, and gets another one then.
func (b *Broker) delay(m *message, level int) {
	levels := b.cluster.options.DelayLevels
	m.physical, m.host = b.end, b.host
	b.end += int64(m.size())
	m.offset = b.delayed[level] // in the queue of its level, which is what the sender is told
	b.delayed[level]++
	m.props[record.PropRealTopic], m.props[record.PropRealQueue] = m.topic, strconv.Itoa(m.queue)

	b.cluster.after(levels[min(level, len(levels))-1], func() { b.store(m.copyFor(m.topic, m.queue)) })
}

func (b *Broker) stored(m *message, ids []string) *remoting.Command {
	return ok(map[string]string{
		"msgId": strings.Join(ids, ","), "queueId": strconv.Itoa(m.queue), "queueOffset": decimal(m.offset),
		"MSG_REGION": region, "TRACE_ON": yes,
	}, nil)
}

// sendBatch stores each message of a batch by itself.
func (b *Broker) sendBatch(m *message) *remoting.Command {
	if strings.HasPrefix(m.topic, retryMark) {
		return fail(remoting.MessageIllegal, "batch request does not support retry group %s", m.topic)
	}

	var all []*message

	for rest := m.body; len(rest) > 0; {
		entry, after, err := record.CutEntry(rest)
		if err != nil {
			return fail(remoting.MessageIllegal, "broken batch: %v", err)
		}

		one := m.copyFor(m.topic, m.queue)
		one.flag, one.body, one.props = entry.Flag, entry.Body, entry.Props.Map()
		all, rest = append(all, one), after
	}

	if len(all) == 0 {
		return fail(remoting.MessageIllegal, "empty batch")
	}

	ids := make([]string, len(all))
	for i, one := range all {
		b.store(one)
		ids[i] = one.id()
	}

	return b.stored(all[0], ids)
}

// sendBack stores a copy of a message for its group to get again, or among the group's dead letters.
func (b *Broker) sendBack(r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)
	at, group, level := f.number("offset"), f.text("group"), f.number("delayLevel")
	most := f.optional("maxReconsumeTimes", defaultRetries)

	if bad := f.failed(); bad != nil {
		return bad
	}

	if b.admit(group) == nil {
		return fail(remoting.GroupNotExist, "subscription group not exist, %s", group)
	}

	if b.perm&permWrite == 0 {
		return fail(remoting.NoPermission, "the broker[%s] sending message is forbidden", b.Name)
	}

	b.ensure(retryMark+group, 1)

	m := b.log[at]
	if m == nil {
		return fail(remoting.SystemError, "look message by offset failed, %d", at)
	}

	again := m.copyFor(retryMark+group, 0)
	again.times++
	again.props[record.PropWait] = "false"

	if again.props[record.PropRetryTopic] == "" {
		again.props[record.PropRetryTopic] = m.topic
	}

	if again.props[record.PropOriginID] == "" {
		again.props[record.PropOriginID] = m.id()
	}

	if level < 0 || int64(m.times) >= most {
		again.topic = deadMark + group
		b.ensure(again.topic, 1)
		again.props[record.PropDelay] = "0"
	} else {
		if level == 0 {
			level = 3 + int64(m.times)
		}

		again.props[record.PropDelay] = decimal(level)
	}

	b.accept(again)

	return ok(nil, nil)
}
