package consumertest

import (
	"context"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Commit is a commit that reached the broker.
type Commit struct {
	Group, Instance string
	Lease           consumer.Lease
	// Checkpoint is what the member wants stored.
	Checkpoint consumer.Checkpoint
	// Before is what was stored, without what the group has returned; Stored is false when nothing was.
	Before consumer.Checkpoint
	Stored bool
	// Covers are the records that Checkpoint calls finished and Before does not.
	Covers []Record
	// Err is why the broker refuses the commit; nil when it is about to take effect.
	Err error
}

// Stored implements consumer.Offsets. What the group sent back or dead-lettered is among the finished offsets of a
// checkpoint, but makes none where the group never committed.
func (m *member) Stored(ctx context.Context, q pipeline.Queue) (consumer.Checkpoint, error) {
	var c consumer.Checkpoint

	err := m.do(ctx, m.call(OpStored, q), func(call *Call) error {
		stored, ok := m.g.offsets(m)[q]

		if wrong, is := m.b.wrongAnswer(); is {
			stored, ok = consumer.Checkpoint{Next: wrong.offset()}, wrong != AnswerAbsent
		} else if !m.sub.Broadcast {
			stored = stored.With(m.g.returned[q]...)
		}

		if !ok {
			return consumer.ErrNoCheckpoint
		}

		c = clone(stored)
		call.Checkpoint = clone(stored)

		return nil
	})

	return c, err
}

// Commit implements consumer.Offsets.
func (m *member) Commit(ctx context.Context, l consumer.Lease, c consumer.Checkpoint) error {
	call := m.call(OpCommit, l.Queue)
	call.Epoch, call.Offset, call.Checkpoint = l.Epoch, c.Next, clone(c)

	return m.do(ctx, call, func(*Call) error {
		err := m.owns(l, true)
		if err == nil {
			err = c.Validate()
		}

		m.seen(l, c, err)

		if err != nil {
			return err
		}

		m.g.offsets(m)[l.Queue] = clone(c)

		if m.b.faults.PruneOnCommit {
			return m.b.prune(l.Queue, c.Next)
		}

		return nil
	})
}

// seen shows a commit to whom it concerns, before it takes effect.
func (m *member) seen(l consumer.Lease, c consumer.Checkpoint, err error) {
	if m.b.cfg.OnCommit == nil {
		return
	}

	seen := Commit{
		Group: m.sub.Group, Instance: m.sub.Instance, Lease: l, Checkpoint: clone(c), Err: err,
	}
	seen.Before, seen.Stored = m.g.offsets(m)[l.Queue]

	seen.Before = clone(seen.Before)

	if log, unknown := m.b.log(l.Queue); unknown == nil {
		end := c.Next
		if len(c.Done) > 0 {
			end = c.Done[len(c.Done)-1].To
		}

		for i := log.at(seen.Before.Next); i < log.at(end); i++ {
			r := m.g.describe(&log.records[i])
			if c.Finished(r.Offset) && !seen.Before.Finished(r.Offset) {
				seen.Covers = append(seen.Covers, r)
			}
		}
	}

	m.b.cfg.OnCommit(seen)
}

func clone(c consumer.Checkpoint) consumer.Checkpoint {
	return consumer.Checkpoint{Next: c.Next, Done: slices.Clone(c.Done)}
}
