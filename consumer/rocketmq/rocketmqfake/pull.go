package rocketmqfake

import (
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// What a real broker returns at most per pull while it serves from memory.
const (
	maxPulled      = 32
	maxPulledBytes = 256 << 10
	maxExamined    = 800
)

const (
	flagSuspend      = 2
	flagSubscription = 4
)

// held is a pull that waits for messages.
type held struct {
	link    *link
	request *remoting.Command
	pull    pull
	filter  filter
	timer   *time.Timer
}

// pull is what a pull asks for.
type pull struct {
	key         groupQueue
	offset, max int64
	flags       int64
	hold        time.Duration
}

func (b *Broker) pull(l *link, r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)
	p := pull{
		key:    groupQueue{f.text("consumerGroup"), f.text("topic"), f.number("queueId")},
		offset: f.number("queueOffset"), max: f.number("maxMsgNums"), flags: f.number("sysFlag"),
		hold: time.Duration(f.number("suspendTimeoutMillis")) * time.Millisecond,
	}
	version := f.number("subVersion")

	if bad := f.failed(); bad != nil {
		return bad
	}

	chosen, refusal := b.admitPull(p, r.Ext, version)
	if refusal != nil {
		return refusal
	}

	q := b.at(p.key.topic, p.key.queue)
	answer := b.read(q, p, chosen)

	if answer.Code == remoting.PullNotFound && p.flags&flagSuspend != 0 && p.hold > 0 {
		h := &held{link: l, request: r, pull: p, filter: chosen}
		h.timer = b.cluster.after(p.hold, func() { b.expire(q, h) })
		q.held = append(q.held, h)

		return nil
	}

	return answer
}

// admitPull makes the checks of a pull in the order of the real broker, and returns how to filter.
func (b *Broker) admitPull(p pull, ext map[string]string, version int64) (filter, *remoting.Command) {
	g, t := b.admit(p.key.group), b.topics[p.key.topic]

	switch {
	case b.perm&permRead == 0:
		return filter{}, fail(remoting.NoPermission, "the broker[%s] pulling message is forbidden", b.Name)
	case g == nil:
		return filter{}, fail(remoting.GroupNotExist, "subscription group [%s] does not exist", p.key.group)
	case g.disabled:
		return filter{}, fail(remoting.NoPermission, "subscription group no permission, %s", p.key.group)
	case t == nil:
		return filter{}, fail(remoting.TopicNotExist, "topic[%s] not exist, apply first please!", p.key.topic)
	case t.perm&permRead == 0:
		return filter{}, fail(remoting.NoPermission, "the topic[%s] pulling message is forbidden", p.key.topic)
	case p.key.queue < 0 || p.key.queue >= int64(t.read):
		return filter{}, fail(remoting.InvalidParameter, "queueId[%d] is illegal, topic:[%s]", p.key.queue, p.key.topic)
	}

	sub := subscription{SubString: ext["subscription"], ExpressionType: ext["expressionType"]}

	if p.flags&flagSubscription == 0 {
		known, found := g.subs[p.key.topic]
		if !found || len(g.members) == 0 {
			return filter{}, fail(remoting.SubscriptionNotExist, "the consumer's subscription not exist")
		}

		if known.SubVersion < version {
			return filter{}, fail(remoting.SubscriptionNotLatest, "the consumer's subscription not latest")
		}

		sub = known
	}

	if isTag(sub) {
		return tagFilter(sub.SubString), nil
	}

	if sub.SubString == "" {
		return filter{}, fail(remoting.SubscriptionParseFail, "parse the consumer's subscription failed")
	}

	if b.cluster.options.NoFilters {
		return filter{}, noFilters(sub)
	}

	sql, err := parseSQL(sub.SubString)
	if err != nil {
		return filter{}, nil // the real broker's trap: what does not parse matches all
	}

	return sql, nil
}

// read answers a pull from what there is.
func (b *Broker) read(q *queue, p pull, f filter) *remoting.Command {
	code, remark, next := remoting.Success, "FOUND", p.offset

	var body []byte

	reset, pending := b.resets[p.key]

	switch {
	case pending:
		delete(b.resets, p.key)

		code, remark, next = remoting.PullOffsetMoved, "OFFSET_RESET", reset
	case q.max() == 0 && p.offset != 0:
		code, remark, next = remoting.PullOffsetMoved, "NO_MESSAGE_IN_QUEUE", 0
	case q.max() == 0:
		code, remark = remoting.PullNotFound, "NO_MESSAGE_IN_QUEUE"
	case p.offset < q.min:
		code, remark, next = remoting.PullOffsetMoved, "OFFSET_TOO_SMALL", q.min
	case p.offset == q.max():
		code, remark = remoting.PullNotFound, "OFFSET_OVERFLOW_ONE"
	case p.offset > q.max():
		code, remark, next = remoting.PullOffsetMoved, "OFFSET_OVERFLOW_BADLY", q.max()
	default:
		if body, next = q.collect(p, f); body == nil {
			code, remark = remoting.PullRetryImmediately, "NO_MATCHED_MESSAGE"
		}
	}

	return &remoting.Command{Code: code, Remark: remark, Body: body, Ext: map[string]string{
		"suggestWhichBrokerId": "0", "nextBeginOffset": decimal(next), "minOffset": decimal(q.min), "maxOffset": decimal(q.max()),
		"topicSysFlag": "0", "groupSysFlag": "0",
	}}
}

// collect returns the records from an offset on that match, and the offset to go on from.
func (q *queue) collect(p pull, f filter) (body []byte, next int64) {
	next = p.offset

	for count := int64(0); next < q.max() && count < min(max(p.max, 1), maxPulled) && next-p.offset < maxExamined; next++ {
		m := q.records[next-q.min]
		if !f.matches(m) {
			continue
		}

		if body != nil && len(body)+m.size() > maxPulledBytes {
			break
		}

		body = m.appendTo(body)
		count++
	}

	return body, next
}

// release answers a held pull, which is not among the queue's any more.
func (b *Broker) release(q *queue, h *held) {
	b.cluster.unschedule(h.timer)
	h.link.answer(h.request, b.read(q, h.pull, h.filter))
}

// expire answers a held pull whose time is over.
func (b *Broker) expire(q *queue, h *held) {
	for i, other := range q.held {
		if other == h {
			q.held = append(q.held[:i], q.held[i+1:]...)
			b.release(q, h)

			return
		}
	}
}
