package main

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// publish stores the events that are not in the topic yet. A run that was killed has published a part of them; what the
// topic holds, and nothing else, says which.
func publish(ctx context.Context, b consumer.Broker, p consumer.Publisher, feed []event) error {
	const batchSize = 256

	there := make(set)

	err := browse(ctx, b, quakesTopic, func(m *pipeline.Message) { there[m.Key] = true })
	if err != nil {
		return err
	}

	batch := make([]*pipeline.Message, 0, batchSize)
	flush := func() error {
		if err := p.Publish(ctx, quakesTopic, batch); err != nil {
			return fmt.Errorf("demo: publishing: %w", err)
		}

		batch = batch[:0]

		return nil
	}

	for _, e := range feed {
		if there[e.id] {
			continue
		}

		if batch = append(batch, e.message()); len(batch) == batchSize {
			if err := flush(); err != nil {
				return err
			}
		}
	}

	if len(batch) == 0 {
		return nil
	}

	return flush()
}
