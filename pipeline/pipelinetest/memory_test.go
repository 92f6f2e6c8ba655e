package pipelinetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// memory is a right sink: it keeps copies of bodies, and rejects messages tagged "poison".
type memory struct {
	mu     sync.Mutex
	bodies []string
}

func (s *memory) Write(ctx context.Context, batch []*pipeline.Message) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memory: %w", err)
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	var failures pipeline.BatchError

	for i, m := range batch {
		if m.Tag == "poison" {
			failures.Fail(i, pipeline.Reject(errOther))
		} else {
			s.bodies = append(s.bodies, string(m.Body))
		}
	}

	return failures.Err()
}

func (s *memory) stored() []string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return slices.Clone(s.bodies)
}

func poison(m *pipeline.Message) { m.Tag = "poison" }

// harness returns the harness of a sink that does something else than a memory, which it has at hand.
func harness(write func(s *memory, ctx context.Context, batch []*pipeline.Message) error) Harness {
	return Harness{
		New: func(testing.TB) (pipeline.Sink, func() []string) {
			s := &memory{}

			return pipeline.SinkFunc(func(ctx context.Context, batch []*pipeline.Message) error {
				return write(s, ctx, batch)
			}), s.stored
		},
		Poison: poison,
	}
}
