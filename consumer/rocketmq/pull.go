package rocketmq

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

const (
	// lateHold is how much later than asked for a broker may answer a held pull: it looks at them every 5 s only.
	lateHold = 10 * time.Second

	flagSuspend      = 2 // hold the pull when there is nothing
	flagSubscription = 4 // the expression comes with the pull

	statusReset = "OFFSET_RESET"
)

// pullWish is what a pull asks of a queue.
type pullWish struct {
	from     pipeline.Offset
	messages int
	filter   Filter
	hold     time.Duration
}

// pulled is the answer to a pull.
type pulled struct {
	// moved says that there is nothing at the offset, for the reason in status; next is what the broker proposes instead.
	moved            bool
	status           string
	body             []byte
	from             pipeline.Offset // what was asked for
	next, first, end pipeline.Offset
	suggested        int64
}

func (m *member) pullRequest(q pipeline.Queue, w pullWish) *remoting.Command {
	text, kind := w.filter.expression()
	flags := flagSubscription

	if w.hold > 0 {
		flags |= flagSuspend
	}

	// The bit that commits an offset beside is never set: nothing is known then of how that went.
	ext := map[string]string{
		"topic": m.wire(q.Topic), "queueId": strconv.Itoa(q.ID), "bname": q.Broker, // queueFields, in a map that need not grow
		fieldGroup:             m.wire(m.group),
		"queueOffset":          decimal(w.from),
		"maxMsgNums":           strconv.Itoa(w.messages),
		"sysFlag":              strconv.Itoa(flags),
		"commitOffset":         "0",
		"suspendTimeoutMillis": strconv.FormatInt(w.hold.Milliseconds(), 10),
		"subscription":         text,
		"expressionType":       kind,
		"subVersion":           strconv.FormatInt(m.subVersion(), 10),
	}

	return &remoting.Command{Code: remoting.PullMessage, Ext: ext}
}

// pull asks a broker once.
func (m *member) pull(ctx context.Context, q pipeline.Queue, prefer int64, w pullWish) (pulled, error) {
	addr, err := m.routes.Reader(ctx, q, int(prefer))
	if err != nil {
		return pulled{}, err //nolint:wrapcheck // of the same family
	}

	p, err := m.pullFrom(ctx, addr, q, w)
	if err != nil {
		return pulled{}, m.calledFor(q, "pull", err)
	}

	return p, nil
}

// pullFrom asks one address once.
func (m *member) pullFrom(ctx context.Context, addr string, q pipeline.Queue, w pullWish) (pulled, error) {
	ctx, cancel := context.WithTimeout(ctx, w.hold+max(m.options.CallTimeout, lateHold))
	defer cancel()

	answer, err := m.client.Call(ctx, addr, m.pullRequest(q, w),
		remoting.PullNotFound, remoting.PullRetryImmediately, remoting.PullOffsetMoved)
	if err != nil {
		return pulled{}, err //nolint:wrapcheck // the caller says what for
	}

	return readPulled(answer)
}

func readPulled(answer *remoting.Command) (pulled, error) {
	p := pulled{moved: answer.Code == remoting.PullOffsetMoved, status: answer.Remark}

	for _, field := range [...]struct {
		name string
		into *pipeline.Offset
	}{{"nextBeginOffset", &p.next}, {"minOffset", &p.first}, {"maxOffset", &p.end}} {
		n, err := number(answer, field.name)
		if err != nil {
			return pulled{}, err
		}

		*field.into = pipeline.Offset(n)
	}

	p.suggested, _ = number(answer, "suggestWhichBrokerId") // without one it is the master

	if answer.Code == remoting.Success {
		p.body = answer.Body
	}

	return p, nil
}

// Pull implements [consumer.Puller]. A reset by an administrator ends the lease; the queue comes back under a new one.
func (m *member) Pull(
	ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, error) {
	held, err := m.lease(l.Queue, l.Epoch)
	if err != nil {
		return consumer.Batch{}, err
	}

	r := held.at(from)
	held.progress.pulls(from)

	p, err := m.obtain(ctx, held, r, from, limit)
	if err != nil || p.moved {
		r.stop()
	}

	switch {
	case err != nil:
		return consumer.Batch{}, held.blame(ctx, err)
	case held.over() != nil:
		return consumer.Batch{}, held.over()
	case p.reset():
		return consumer.Batch{Next: from, End: max(from, p.end)}, nil // it has begun again there already
	case p.moved:
		return consumer.Batch{}, &consumer.OutOfRangeError{Queue: l.Queue, From: from, First: p.first, End: p.end}
	}

	if r.ahead == nil && p.more() {
		m.readAhead(held, r, p, limit.Messages) //nolint:contextcheck // it outlasts the pull
	}

	b, more, err := m.batch(held, from, limit, p)
	if err != nil {
		r.stop()

		return consumer.Batch{}, err
	}

	r.at, r.rest = b.Next, nil
	if more {
		r.rest = &p
	}

	held.leave(r)
	held.progress.next.Store(int64(b.Next))

	return b, nil
}

// batch reads the messages of an answer, and reports whether it has more: there was no room for all, or one is damaged, but not
// the first. They share memory, as their bodies do.
func (m *member) batch(
	held *lease, from pipeline.Offset, limit consumer.Limit, p pulled,
) (b consumer.Batch, more bool, err error) {
	var (
		count  = min(record.Count(p.body), limit.Messages)
		free   []pipeline.Message
		wanted = m.options.Filters[held.Queue.Topic].tags()
		room   = limit.Bytes
		next   = from // behind what has been read
	)

	b = consumer.Batch{Next: max(p.next, from), End: p.end, Messages: make([]*pipeline.Message, 0, count)}

	more, err = m.broker.decoder.Each(p.body, int64(from), func(r *record.Record) bool {
		if len(free) == 0 {
			free = make([]pipeline.Message, count)
		}

		message := &free[0]
		m.fill(message, held, r)

		if len(wanted) == 0 || slices.Contains(wanted, message.Tag) { // brokers compare no more than hashes of tags
			room -= int64(message.Size())
			if len(b.Messages) > 0 && (room < 0 || len(b.Messages) >= limit.Messages) {
				*message = pipeline.Message{}

				return false
			}

			b.Messages, free = append(b.Messages, message), free[1:]
		} else {
			*message = pipeline.Message{}
		}

		next = pipeline.Offset(r.Offset + 1)

		return true
	})
	if err != nil && next == from {
		return consumer.Batch{}, false, damaged(held.Queue, from, err)
	}

	if more = more || err != nil; more { // what has been read comes first, and the next pull meets the damage
		b.Next = next
	}

	b.End = max(b.End, b.Next)

	return b, more, nil
}

// damaged returns the error of a record that cannot be read, which is the one at an offset unless it says where it is.
func damaged(q pipeline.Queue, at pipeline.Offset, err error) error {
	if known, ok := errors.AsType[*record.DamagedError](err); ok && known.Offset >= 0 {
		at = max(at, pipeline.Offset(known.Offset))
	}

	return &consumer.DamagedError{Queue: q, Offset: at, Err: err}
}

// original is a record to copy elsewhere.
type original struct {
	record.Record

	// batched says that it is one of many in a record of the broker's, which the broker would copy whole.
	batched bool
}

// peek reads the record at an offset, whatever filter the topic has.
func (m *member) peek(ctx context.Context, held *lease, at pipeline.Offset) (*original, error) {
	p, err := m.pull(ctx, held.Queue, 0, pullWish{from: at, messages: 1})
	if err != nil {
		return nil, err
	}

	if p.reset() {
		return nil, m.followReset(ctx, held, p.next)
	}

	if p.moved {
		return nil, &consumer.OutOfRangeError{Queue: held.Queue, From: at, First: p.first, End: p.end}
	}

	records, _, err := m.broker.decoder.Decode(p.body, int64(at))

	switch {
	case len(records) > 0 && records[0].Offset == int64(at):
		return &original{Record: records[0], batched: isBatch(p.body)}, nil
	case err != nil:
		return nil, damaged(held.Queue, at, err)
	default:
		return nil, fmt.Errorf("rocketmq: %s holds no record at offset %d", held.Queue, at)
	}
}

// isBatch reports whether the first record in the answer to a pull, which has been read, holds many messages.
func isBatch(body []byte) bool {
	const (
		place = 36 // of the flags in a record
		bits  = 0xC0
	)

	return binary.BigEndian.Uint32(body[place:])&bits == bits
}
