package consumertest

import (
	"context"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// Pull implements consumer.Puller.
func (m *member) Pull(
	ctx context.Context, l consumer.Lease, from pipeline.Offset, limit consumer.Limit,
) (consumer.Batch, error) {
	call := m.call(OpPull, l.Queue)
	call.Epoch, call.Offset = l.Epoch, from

	hold := time.NewTimer(m.b.cfg.Hold)
	defer hold.Stop()

	for {
		var (
			batch            consumer.Batch
			arrived, changed <-chan struct{}
		)

		err := m.do(ctx, call, func(*Call) error {
			if err := m.owns(l, false); err != nil {
				return err
			}

			log, err := m.b.log(l.Queue)
			if err != nil {
				return err
			}

			arrived, changed = log.changed, m.changed
			batch, err = log.read(from, limit)
			m.deliver(l, batch.Messages)

			return err
		})
		if err != nil {
			return consumer.Batch{}, err
		}

		if batch.Next > from {
			return batch, nil
		}

		select {
		case <-arrived:
		case <-changed:
		case <-hold.C:
			return batch, nil
		case <-ctx.Done():
			return consumer.Batch{}, ctx.Err()
		}
	}
}

// deliver notes which messages are handed out under a lease.
func (m *member) deliver(l consumer.Lease, messages []*pipeline.Message) {
	for _, message := range messages {
		message.Origin.Epoch = l.Epoch

		call := m.call(OpDeliver, l.Queue)
		call.At = time.Now()
		call.Epoch = l.Epoch
		call.of(message)
		m.b.calls = append(m.b.calls, call)
	}
}

// Find implements consumer.Puller.
func (m *member) Find(ctx context.Context, q pipeline.Queue, at pipeline.Start) (pipeline.Offset, error) {
	var found pipeline.Offset

	err := m.do(ctx, m.call(OpFind, q), func(call *Call) error {
		log, err := m.b.log(q)
		if err != nil {
			return err
		}

		switch from, isTime := at.Time(); {
		case isTime:
			found = log.since(from)
		case at.IsLast():
			found = log.end
		default:
			found = log.first
		}

		if wrong, ok := m.b.wrongAnswer(); ok {
			found = wrong.offset()
		}

		call.Offset = found

		return nil
	})

	return found, err
}
