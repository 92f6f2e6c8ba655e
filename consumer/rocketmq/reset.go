package rocketmq

import (
	"context"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const (
	// confirmTries is how often a reset is confirmed before the queue is given back without, confirmPause how long the tries
	// are apart.
	confirmTries = 3
	confirmPause = 200 * time.Millisecond
)

// followReset ends a lease because an administrator has set the group's offset, and gives the queue back under a new one. The
// broker took its mark of the reset off when it told us, and heeds commits again: one that was on its way may have
// overwritten the target, which is therefore stored once more. It returns [consumer.ErrReset].
func (m *member) followReset(ctx context.Context, held *lease, target pipeline.Offset) error {
	held.end(consumer.ErrReset)
	m.reportReset(held, target)

	held.committing.Lock()
	defer held.committing.Unlock()

	ctx = context.WithoutCancel(ctx) // a caller who has given up has not undone the reset
	err := m.confirm(ctx, held, target)

	for try := 1; err != nil && try < confirmTries && m.over() == nil; try++ {
		<-time.After(confirmPause)

		err = m.confirm(ctx, held, target)
	}

	if err != nil {
		m.log.Error("a reset is not confirmed; a commit that was under way may have undone it",
			zap.Stringer("queue", held.Queue), zap.Int64("offset", int64(target)), zap.Error(err))
	}

	m.renew(held)

	return consumer.ErrReset
}

// confirm stores the offset of a reset. lease.committing is held.
func (m *member) confirm(ctx context.Context, held *lease, target pipeline.Offset) error {
	if m.file != nil {
		return m.file.commit(held.Queue, consumer.Checkpoint{Next: target})
	}

	if err := m.keep(ctx, held, consumer.Checkpoint{Next: target}); err != nil {
		return err
	}

	_, err := m.update(ctx, held.Queue, target)

	return err
}

func (m *member) reportReset(held *lease, target pipeline.Offset) {
	m.log.Warn("an administrator has reset the group's offset; the queue begins again there",
		zap.Stringer("queue", held.Queue), zap.Int64("offset", int64(target)))
}
