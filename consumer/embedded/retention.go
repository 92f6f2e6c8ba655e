package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Pruned says what retention did to one queue.
type Pruned struct {
	Queue pipeline.Queue
	// From and To bound the deleted offsets; To is the queue's first offset now.
	From, To pipeline.Offset
	// Unread says how many of them were not below the committed offset of a group, for each such group ([DropUnread]).
	Unread map[string]int64
	// Held says how many messages over the limits were kept for a group, for each group that holds any ([KeepUnread]).
	Held map[string]int64
}

// keepPruning prunes now and then until the broker closes.
func (b *Broker) keepPruning() {
	ticker := time.NewTicker(b.options.PruneEvery)
	defer ticker.Stop()

	for {
		select {
		case <-b.closing:
			return
		case <-ticker.C:
		}

		if _, err := b.Prune(b.life); err != nil && !b.isClosed() {
			b.log.Error("embedded: retention", zap.String("dir", b.options.Dir), zap.Error(err))
		}
	}
}

// Prune does at once what Options.Retention asks for, as the broker does by itself every Options.PruneEvery, and returns
// what happened in the queues where anything did. The same is told to Options.OnPrune. One queue's failure does not keep
// it from the others.
func (b *Broker) Prune(ctx context.Context) ([]Pruned, error) {
	b.pruning.Lock()
	defer b.pruning.Unlock()

	b.mu.RLock()
	topics := make([]*topic, 0, len(b.topics))

	for _, t := range b.topics {
		topics = append(topics, t)
	}
	b.mu.RUnlock()

	slices.SortFunc(topics, func(x, y *topic) int { return cmp.Compare(x.name, y.name) })

	var (
		all    []Pruned
		failed []error
	)

	for _, t := range topics {
		keep := b.options.retention(t.name)
		if !keep.limited() {
			continue
		}

		for _, q := range t.queues {
			p, err := b.prune(ctx, t, q, keep)
			if err != nil {
				failed = append(failed, fmt.Errorf("embedded: pruning %s: %w", q.name, err))
			} else if p.To > p.From || len(p.Held) > 0 {
				all = append(all, p)
				b.report(p)
			}
		}
	}

	return all, errors.Join(failed...)
}

func (b *Broker) report(p Pruned) {
	if len(p.Unread) > 0 {
		b.log.Warn("embedded: retention deleted messages that groups have not read",
			zap.Stringer("queue", p.Queue), zap.Int64("to", int64(p.To)), zap.Any("unread", p.Unread))
	}

	if len(p.Held) > 0 {
		b.log.Warn("embedded: retention keeps messages over the limits, since groups have not read them",
			zap.Stringer("queue", p.Queue), zap.Any("held", p.Held))
	}

	if b.options.OnPrune != nil {
		b.options.OnPrune(p)
	}
}

// prune deletes what is over the limits of one queue.
func (b *Broker) prune(ctx context.Context, t *topic, q *queue, keep Retention) (Pruned, error) {
	none := Pruned{Queue: q.name}

	if err := b.enter(); err != nil {
		return none, err
	}
	defer b.leave()

	state := q.view()

	limit, err := b.overLimit(q, state, keep, int64(len(t.queues)))
	if err != nil || limit <= state.first {
		return none, err
	}

	p := Pruned{Queue: q.name, From: state.first, To: limit}

	for _, g := range b.everyGroup() {
		next, err := g.unread(t, q, state)
		if err != nil {
			return none, err
		}

		switch {
		case next >= limit:
		case keep.Unread == DropUnread:
			p.Unread = count(p.Unread, g.name, limit-max(next, state.first))
		default:
			p.Held = count(p.Held, g.name, limit-max(next, state.first))
			p.To = max(min(p.To, next), state.first)
		}
	}

	if p.To == p.From {
		return p, nil
	}

	return p, b.deleteTo(ctx, q, state, p.To)
}

func count(of map[string]int64, group string, n pipeline.Offset) map[string]int64 {
	if of == nil {
		of = make(map[string]int64)
	}

	of[group] = int64(n)

	return of
}

// overLimit returns the offset below which everything is over a limit.
func (b *Broker) overLimit(q *queue, s queueState, keep Retention, queues int64) (pipeline.Offset, error) {
	limit := s.first

	if keep.Age > 0 {
		oldest := time.Now().Add(-keep.Age).UnixNano()

		o, err := b.search(q, s, func(f *fields) bool { return f.stored >= oldest })
		if err != nil {
			return limit, err
		}

		limit = max(limit, o)
	}

	if room := max(keep.Bytes/queues, 1); keep.Bytes > 0 && s.endPos-s.firstPos > room {
		o, err := b.search(q, s, func(f *fields) bool { return s.endPos-f.pos <= room })
		if err != nil {
			return limit, err
		}

		limit = max(limit, o)
	}

	return limit, nil
}

// unread returns the first offset of a queue that the group has not finished. A group that does not read the queue is at
// its end.
func (g *group) unread(t *topic, q *queue, s queueState) (pipeline.Offset, error) {
	c, err := g.broker.checkpoint(g.id, q)
	if !errors.Is(err, consumer.ErrNoCheckpoint) {
		return c.Next, err
	}

	g.mu.Lock()
	defer g.mu.Unlock()

	if l := g.leases[q.name]; l != nil && l.start >= 0 {
		return l.start, nil
	}

	reads := t.name == consumer.RetryTopic(g.name)
	for _, m := range g.members {
		reads = reads || slices.Contains(m.topics, t)
	}

	if reads {
		return s.first, nil
	}

	return s.end, nil
}

// deleteTo makes an offset the first one of a queue. Readers are told first, so that nobody takes for damage what is gone.
func (b *Broker) deleteTo(ctx context.Context, q *queue, s queueState, first pipeline.Offset) error {
	tx, err := b.store.begin(ctx)
	if err != nil {
		return err
	}
	defer tx.abort()

	pos, err := b.posOf(q, s, first)
	if err != nil {
		return err
	}

	to := tx.touch(q)
	to.state.first, to.state.firstPos = first, pos
	q.show(to.state)

	from, end := q.id.recordKey(nil, s.first), q.id.recordKey(nil, first)
	if err := tx.batch.DeleteRange(from, end, nil); err != nil {
		return fmt.Errorf("embedded: writing: %w", err)
	}

	b.counts.pruned.Add(int64(first - s.first))

	return tx.commit()
}

// posOf returns how many bytes were appended below an offset; about as many where its record cannot be read.
func (b *Broker) posOf(q *queue, s queueState, o pipeline.Offset) (int64, error) {
	pos := s.endPos

	_, err := b.search(q, queueState{first: o, end: min(o+1, s.end)}, func(f *fields) bool {
		pos = f.pos

		return true
	})

	return pos, err
}
