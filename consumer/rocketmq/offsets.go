package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// firstOfFive is the protocol's version of release 5.0.0.
const firstOfFive = 413

// Stored returns the checkpoint of a queue; see [consumer.Offsets].
func (m *member) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	if err := m.over(); err != nil {
		return consumer.Checkpoint{}, err
	}

	if m.file != nil {
		return m.file.stored(q)
	}

	next, err := m.query(ctx, q)
	if err != nil {
		return consumer.Checkpoint{}, err
	}

	found, err := m.readTail(ctx, q)
	if err != nil {
		return consumer.Checkpoint{}, err
	}

	c, recorded := found.checkpoint(next)
	if !recorded && m.doubts(next) {
		return consumer.Checkpoint{}, consumer.ErrNoCheckpoint
	}

	return c, nil
}

// doubts reports whether an offset may be what a broker says when nothing is stored: those of version 4 say 0. Ours then has
// a record, so one without is not ours.
func (m *member) doubts(next pipeline.Offset) bool {
	return next == 0 && m.old.Load() && !m.options.JavaFirstBoot && !m.options.OffsetsOnly
}

// query asks a broker for the offset that the group has stored in a queue.
func (m *member) query(ctx context.Context, q pipeline.Queue) (pipeline.Offset, error) {
	addr, err := m.routes.Reader(ctx, q, 0)
	if err != nil {
		return 0, err //nolint:wrapcheck // of the same family
	}

	ext := m.queueFields(q)
	ext[fieldGroup] = m.wire(m.group)

	if !m.options.JavaFirstBoot {
		ext["setZeroIfNotFound"] = no
	}

	answer, err := m.call(ctx, addr, &remoting.Command{Code: remoting.QueryConsumerOffset, Ext: ext})
	if routes.Code(err) == remoting.QueryNotFound {
		return 0, consumer.ErrNoCheckpoint
	}

	var next pipeline.Offset
	if err == nil {
		next, err = offsetIn(answer)
	}

	if err != nil {
		return 0, m.calledFor(q, "look up the stored offset", err)
	}

	return next, nil
}

// Commit stores a checkpoint; see [consumer.Offsets]. An administrator who reset the group meanwhile has the last word: then
// nothing is stored, and the queue begins again at the reset's offset, under a new lease.
func (m *member) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	if err := c.Validate(); err != nil {
		return err //nolint:wrapcheck // it says all
	}

	held, err := m.answerable(l)
	if err != nil {
		return err
	}

	held.committing.Lock()
	defer held.committing.Unlock()

	if err := held.over(); err != nil {
		return err
	}

	if m.file != nil {
		err := m.file.commit(l.Queue, c)
		if err == nil {
			held.progress.commits(c.Next)
		}

		return err
	}

	under, done := held.during(ctx)
	defer done()

	if err := m.keep(under, held, c); err != nil {
		return held.blame(ctx, err)
	}

	pending, err := m.update(under, l.Queue, c.Next)
	if err != nil {
		return held.blame(ctx, err)
	}

	if !pending {
		held.progress.commits(c.Next)

		return nil
	}

	target, err := m.query(ctx, l.Queue)
	if err != nil {
		return err
	}

	m.reportReset(held, target)
	m.renew(held)

	return consumer.ErrReset
}

// update stores an offset and reports whether a reset that no pull has met yet keeps the broker from it.
func (m *member) update(ctx context.Context, q pipeline.Queue, next pipeline.Offset) (pending bool, err error) {
	addr, err := m.routes.Reader(ctx, q, 0)
	if err != nil {
		return false, err //nolint:wrapcheck // of the same family
	}

	ext := m.queueFields(q)
	ext[fieldGroup] = m.wire(m.group)
	ext["commitOffset"] = decimal(next)

	answer, err := m.call(ctx, addr, &remoting.Command{Code: remoting.UpdateConsumerOffset, Ext: ext})
	if err != nil {
		return false, m.calledFor(q, "commit", err)
	}

	return answer.Remark == "Offset has been previously reset", nil
}

// Find returns the offset that a start position means now; see [consumer.Puller].
func (m *member) Find(ctx context.Context, q pipeline.Queue, at pipeline.Start) (pipeline.Offset, error) {
	if err := m.over(); err != nil {
		return 0, err
	}

	t, timed := at.Time()

	switch {
	case timed:
		return m.search(ctx, q, t)
	case at.IsLast():
		return m.position(ctx, q, remoting.GetMaxOffset, nil)
	default:
		return m.position(ctx, q, remoting.GetMinOffset, nil)
	}
}

// position asks a queue's master for one of its offsets.
func (m *member) position(
	ctx context.Context, q pipeline.Queue, code int, more map[string]string,
) (pipeline.Offset, error) {
	addr, err := m.routes.Master(ctx, q)
	if err != nil {
		return 0, err //nolint:wrapcheck // of the same family
	}

	ext := m.queueFields(q)
	maps.Copy(ext, more)

	var offset pipeline.Offset

	answer, err := m.call(ctx, addr, &remoting.Command{Code: code, Ext: ext})
	if err == nil {
		offset, err = offsetIn(answer)
	}

	if err != nil {
		return 0, m.calledFor(q, "find a position", err)
	}

	return offset, nil
}

// search returns the first offset stored at t or later.
func (m *member) search(ctx context.Context, q pipeline.Queue, t time.Time) (pipeline.Offset, error) {
	ms := t.UnixMilli()
	if t.After(time.UnixMilli(ms)) {
		ms++ // brokers know milliseconds only
	}

	found, err := m.position(ctx, q, remoting.SearchOffset, map[string]string{
		"timestamp": strconv.FormatInt(ms, 10), "boundaryType": "LOWER",
	})
	if err != nil || !m.old.Load() {
		return found, err
	}

	// For a time after the last message, version 4 says that message's offset.
	p, err := m.pull(ctx, q, 0, pullWish{from: found, messages: 1})
	if err != nil {
		return 0, err
	}

	records, _, err := m.broker.decoder.Decode(p.body, int64(found))
	if err != nil || len(records) == 0 || records[0].Offset != int64(found) || records[0].Stored >= ms {
		return found, err //nolint:wrapcheck // it says where
	}

	return found + 1, nil
}

// queueFields returns the fields that name a queue.
func (m *member) queueFields(q pipeline.Queue) map[string]string {
	return map[string]string{"topic": m.wire(q.Topic), "queueId": strconv.Itoa(q.ID), "bname": q.Broker}
}

// calledFor names the queue that a failed call was for.
func (m *member) calledFor(q pipeline.Queue, what string, err error) error {
	if cause := m.over(); cause != nil {
		return cause
	}

	switch routes.Code(err) {
	case remoting.GroupNotExist, remoting.NoPermission:
		return fmt.Errorf("rocketmq: %s: %s: %w", q, what, explain(m.group, err))
	case remoting.TopicNotExist:
		if q.Topic != m.retry {
			err = fmt.Errorf("%w: %w", &consumer.UnknownTopicError{Topic: q.Topic}, err)
		}

		m.suspect()
	case remoting.SystemError:
	default:
		if !errors.Is(err, context.Canceled) {
			m.suspect()
		}
	}

	return fmt.Errorf("rocketmq: %s: %s: %w", q, what, err)
}

// offsetIn returns the offset that an answer carries.
func offsetIn(answer *remoting.Command) (pipeline.Offset, error) {
	offset, err := number(answer, "offset")
	if err == nil && offset < 0 {
		err = fmt.Errorf("the broker answered with offset %d", offset)
	}

	return pipeline.Offset(offset), err
}

// number returns a number that an answer carries.
func number(answer *remoting.Command, field string) (int64, error) {
	n, err := strconv.ParseInt(answer.Ext[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the broker answered with %s %q", field, answer.Ext[field])
	}

	return n, nil
}

func decimal(o pipeline.Offset) string { return strconv.FormatInt(int64(o), 10) }
