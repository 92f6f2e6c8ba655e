package rocketmqfake

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const earliestStoreTime = 32

// answerOffsets answers what is about positions in queues.
func (b *Broker) answerOffsets(r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)

	switch r.Code {
	case remoting.QueryConsumerOffset:
		return b.queryOffset(f)
	case remoting.UpdateConsumerOffset:
		return b.updateOffset(f)
	case remoting.ResetOffset:
		return b.resetOffset(f)
	case remoting.GetConsumeStats:
		return b.stats(f)
	case remoting.GetMaxOffset, remoting.GetMinOffset, remoting.SearchOffset, earliestStoreTime:
		return b.position(r.Code, f)
	default:
		return fail(remoting.NotSupported, " request type %d not supported", r.Code)
	}
}

func offsetAnswer(offset int64) *remoting.Command {
	return ok(map[string]string{"offset": decimal(offset)}, nil)
}

func (b *Broker) position(code int, f *fields) *remoting.Command {
	q, at := b.at(f.text("topic"), f.number("queueId")), int64(0)

	if code == remoting.SearchOffset {
		at = f.number("timestamp")
	}

	if bad := f.failed(); bad != nil {
		return bad
	}

	if q == nil {
		q = &queue{}
	}

	switch code {
	case remoting.GetMaxOffset:
		return offsetAnswer(q.max())
	case remoting.GetMinOffset:
		return offsetAnswer(q.min)
	case earliestStoreTime:
		first := int64(-1)
		if len(q.records) > 0 {
			first = q.records[0].stored.UnixMilli()
		}

		return ok(map[string]string{"timestamp": decimal(first)}, nil)
	default:
		return offsetAnswer(q.search(at, strings.EqualFold(f.ext["boundaryType"], "UPPER")))
	}
}

// search returns the first offset stored at or after a time, or with upper the last at or before it.
func (q *queue) search(ms int64, upper bool) int64 {
	if upper {
		for offset := q.max() - 1; offset >= q.min; offset-- {
			if q.records[offset-q.min].stored.UnixMilli() <= ms {
				return offset
			}
		}

		return 0
	}

	for offset := q.min; offset < q.max(); offset++ {
		if q.records[offset-q.min].stored.UnixMilli() >= ms {
			return offset
		}
	}

	return q.max()
}

func (b *Broker) queryOffset(f *fields) *remoting.Command {
	key := groupQueue{f.text("consumerGroup"), f.text("topic"), f.number("queueId")}
	if bad := f.failed(); bad != nil {
		return bad
	}

	offset, found := b.resets[key]
	if !found {
		offset, found = b.offsets[key]
	}

	switch q := b.at(key.topic, key.queue); {
	case found && offset >= 0:
	case f.ext["setZeroIfNotFound"] != "false" && q != nil && q.min == 0 && len(q.records) > 0:
		offset = 0
	default:
		return fail(remoting.QueryNotFound, "Not found, maybe this group consumer boot first")
	}

	return offsetAnswer(offset)
}

func (b *Broker) updateOffset(f *fields) *remoting.Command {
	key := groupQueue{f.text("consumerGroup"), f.text("topic"), f.number("queueId")}
	offset := f.number("commitOffset")

	if bad := f.failed(); bad != nil {
		return bad
	}

	switch {
	case b.groups[key.group] == nil:
		return fail(remoting.GroupNotExist, "Group %s not exist!", key.group)
	case b.topics[key.topic] == nil:
		return fail(remoting.TopicNotExist, "Topic %s not exist!", key.topic)
	}

	if _, pending := b.resets[key]; pending {
		return &remoting.Command{Remark: "Offset has been previously reset"}
	}

	b.commit(key, offset)

	return ok(nil, nil)
}

// commit stores an offset. Before it, what is old enough is written down.
func (b *Broker) commit(key groupQueue, offset int64) {
	if t := time.Now(); t.Sub(b.flushed) >= rewind {
		b.snapshot, b.flushed = maps.Clone(b.offsets), t
	}

	b.offsets[key] = offset
}

// resetOffset is an administrator's change of a group's offsets: of one queue to an offset, or of all to a time.
func (b *Broker) resetOffset(f *fields) *remoting.Command {
	name, group, at := f.text("topic"), f.text("group"), f.number("timestamp")
	only, offset := f.optional("queueId", -1), f.optional("offset", -1)

	if bad := f.failed(); bad != nil {
		return bad
	}

	t := b.topics[name]
	if t == nil {
		return fail(remoting.TopicNotExist, "Topic %s does not exist", name)
	}

	if b.groups[group] == nil {
		return fail(remoting.GroupNotExist, "Group %s does not exist", group)
	}

	entries := []string{}

	for id := range int64(t.read) {
		if only >= 0 && only != id {
			continue
		}

		target := offset
		if only < 0 || target < 0 {
			target = t.queues[id].at(at)
		}

		key := groupQueue{group, name, id}
		b.commit(key, target)
		b.resets[key] = target
		entries = append(entries, b.queueKey(name, id)+fmt.Sprintf(":%d", target))
	}

	return ok(nil, []byte(`{"offsetTable":{`+strings.Join(entries, ",")+`}}`))
}

// at returns the offset of a time as resets know it: -1 is the end.
func (q *queue) at(ms int64) int64 {
	if ms < 0 {
		return q.max()
	}

	return q.search(ms, false)
}

// queueKey is a queue as a key of the dialect of JSON that brokers write.
func (b *Broker) queueKey(topic string, id int64) string {
	return fmt.Sprintf(`{"brokerName":%q,"queueId":%d,"topic":%q}`, b.Name, id, topic)
}

func (b *Broker) stats(f *fields) *remoting.Command {
	group := f.text("consumerGroup")
	if bad := f.failed(); bad != nil {
		return bad
	}

	entries := []string{}

	for name, t := range b.topics {
		if only := f.ext["topic"]; only != "" && only != name {
			continue
		}

		for id, q := range t.queues {
			offset, found := b.offsets[groupQueue{group, name, int64(id)}]
			if !found {
				continue
			}

			var last int64
			if at := offset - 1 - q.min; at >= 0 && at < int64(len(q.records)) {
				last = q.records[at].stored.UnixMilli()
			}

			entries = append(entries, fmt.Sprintf(`%s:{"brokerOffset":%d,"consumerOffset":%d,"lastTimestamp":%d,"pullOffset":%d}`,
				b.queueKey(name, int64(id)), q.max(), offset, last, offset))
		}
	}

	return ok(nil, []byte(`{"consumeTps":0.0,"offsetTable":{`+strings.Join(entries, ",")+`}}`))
}
