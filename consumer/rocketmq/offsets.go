package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// firstOfFive is the protocol's version of the first release whose brokers tell "nothing stored" from 0.
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

	return m.recall(ctx, q, next)
}

// query asks a broker for the offset that the group has stored in a queue.
func (m *member) query(ctx context.Context, q pipeline.Queue) (pipeline.Offset, error) {
	addr, err := m.routes.anyOf(ctx, q, 0)
	if err != nil {
		return 0, err
	}

	ext := m.queueFields(q)
	ext["consumerGroup"] = m.routes.space.wrap(m.group)

	if !m.options.JavaFirstBoot {
		ext["setZeroIfNotFound"] = "false"
	}

	answer, err := m.call(ctx, addr, &remoting.Command{Code: remoting.QueryConsumerOffset, Ext: ext})
	if codeOf(err) == remoting.QueryNotFound {
		return 0, consumer.ErrNoCheckpoint
	}

	if err != nil {
		return 0, m.calledFor(q, "look up the stored offset", err)
	}

	next, err := offsetIn(answer)
	if err != nil {
		return 0, m.calledFor(q, "look up the stored offset", err)
	}

	if next == 0 && answer.Version < firstOfFive {
		m.log.Warn("a broker of version 4 says that offset 0 is stored, which it also says when nothing is",
			zap.Stringer("queue", q))
	}

	return next, nil
}

// queueFields returns the fields that name a queue.
func (m *member) queueFields(q pipeline.Queue) map[string]string {
	return map[string]string{
		"topic": m.routes.space.wrap(q.Topic), "queueId": strconv.Itoa(q.ID), "bname": q.Broker,
	}
}

// calledFor names the queue that a failed call was for.
func (m *member) calledFor(q pipeline.Queue, what string, err error) error {
	if cause := m.over(); cause != nil && errors.Is(err, cause) {
		return cause
	}

	if answered := codeOf(err); answered != remoting.SystemError && answered != remoting.QueryNotFound {
		m.suspect()
	}

	return fmt.Errorf("rocketmq: %s: %s: %w", q, what, err)
}

// offsetIn returns the offset that an answer carries.
func offsetIn(answer *remoting.Command) (pipeline.Offset, error) {
	offset, err := number(answer, "offset")
	if err != nil {
		return 0, err
	}

	if offset < 0 {
		return 0, fmt.Errorf("the broker answered with offset %d", offset)
	}

	return pipeline.Offset(offset), nil
}

// number returns a number that an answer carries.
func number(answer *remoting.Command, field string) (int64, error) {
	n, err := strconv.ParseInt(answer.Ext[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the broker answered with %s %q", field, answer.Ext[field])
	}

	return n, nil
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

	ctx, done := held.during(ctx)
	defer done()

	if err := held.over(); err != nil {
		return err
	}

	if m.file != nil {
		return m.file.commit(l.Queue, c)
	}

	pending, err := m.update(ctx, l.Queue, c.Next)
	if err == nil && pending {
		return m.followReset(ctx, held)
	}

	if err == nil {
		err = m.keep(ctx, held, c)
	}

	if err != nil {
		return held.blame(ctx, err)
	}

	return nil
}

// update stores an offset and reports whether a reset keeps the broker from it.
func (m *member) update(ctx context.Context, q pipeline.Queue, next pipeline.Offset) (pending bool, err error) {
	addr, err := m.routes.anyOf(ctx, q, 0)
	if err != nil {
		return false, err
	}

	ext := m.queueFields(q)
	ext["consumerGroup"] = m.routes.space.wrap(m.group)
	ext["commitOffset"] = decimal(next)

	answer, err := m.call(ctx, addr, &remoting.Command{Code: remoting.UpdateConsumerOffset, Ext: ext})
	if err != nil {
		return false, m.calledFor(q, "commit", err)
	}

	return answer.Remark == "Offset has been previously reset", nil
}

func decimal(o pipeline.Offset) string { return strconv.FormatInt(int64(o), 10) }

// blame returns what ended the lease when that is why a call under it failed, or the caller's own end, or err.
func (l *lease) blame(ctx context.Context, err error) error {
	if cause := l.over(); cause != nil {
		return cause
	}

	if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
		return ctx.Err()
	}

	return err
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
	addr, err := m.routes.master(ctx, q)
	if err != nil {
		return 0, err
	}

	ext := m.queueFields(q)
	for name, value := range more {
		ext[name] = value
	}

	answer, err := m.call(ctx, addr, &remoting.Command{Code: code, Ext: ext})
	if err != nil {
		return 0, m.calledFor(q, "find a position", err)
	}

	offset, err := offsetIn(answer)
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
	if err != nil {
		return 0, err
	}

	return m.beyondLast(ctx, q, found, ms)
}
