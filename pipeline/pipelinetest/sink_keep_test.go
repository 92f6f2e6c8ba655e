package pipelinetest

import (
	"context"
	"slices"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// keeper is a sink that stores by holding on to what it was given, in one of three ways.
type keeper struct {
	hold func(batch []*pipeline.Message) (read func() []string)
	held []func() []string
}

func (k *keeper) Write(_ context.Context, batch []*pipeline.Message) error {
	k.held = append(k.held, k.hold(batch))

	return nil
}

func (k *keeper) stored() []string {
	var all []string
	for _, read := range k.held {
		all = append(all, read()...)
	}

	return all
}

func TestSinksThatKeepWhatTheyWereGivenAreReported(t *testing.T) {
	t.Parallel()

	for name, hold := range map[string]func(batch []*pipeline.Message) func() []string{
		"the batch": func(batch []*pipeline.Message) func() []string {
			return func() []string { return bodies(batch...) }
		},
		"the messages": func(batch []*pipeline.Message) func() []string {
			messages := slices.Clone(batch)

			return func() []string { return bodies(messages...) }
		},
		"the bodies": func(batch []*pipeline.Message) func() []string {
			messages := make([]*pipeline.Message, len(batch))
			for i, m := range batch {
				messages[i] = m.Clone()
			}

			return func() []string { return bodies(messages...) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			failures := note(t, func(tb testing.TB) {
				checkKeepsNothing(tb, Harness{New: func(testing.TB) (pipeline.Sink, func() []string) {
					k := &keeper{hold: hold}

					return k, k.stored
				}})
			})
			audit{"": failures}.has(t, "", `the store holds -1 of "{\"n\":0}"`)
		})
	}
}
