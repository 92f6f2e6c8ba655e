package actors_test

import (
	"context"
	"maps"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// counter is a transform, a gather and a sink that counts its messages; where it is broken, asking it panics.
type counter struct {
	n      atomic.Int64
	broken bool
}

func (c *counter) Transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	c.n.Add(1)

	return emit(m)
}

func (c *counter) TransformBatch(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
	c.n.Add(int64(len(batch)))

	return emit(batch[0])
}

func (c *counter) Write(_ context.Context, batch []*pipeline.Message) error {
	c.n.Add(int64(len(batch)))

	return nil
}

func (c *counter) Meter() map[string]int64 {
	if c.broken {
		panic("asked") // as a plugin of somebody else may
	}

	return map[string]int64{"messages": c.n.Load()}
}

// TestPluginsAreAskedForTheirCounts has plugins of each kind, in several lanes, one of which panics when it is asked.
func TestPluginsAreAskedForTheirCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := newGround(t, 4)
		g.publish(0, 100)

		counting := func(broken bool) func() (pipeline.Transform, error) {
			return func() (pipeline.Transform, error) { return &counter{broken: broken}, nil }
		}

		r := g.run(job(
			pipeline.Channel{
				Name: "first", Lanes: 3,
				Stages: []pipeline.Stage{
					{Name: "counts", New: counting(false)}, {Name: "breaks", New: counting(true)}, gate(named("none"), nil, true),
				},
				Gather: &pipeline.GatherStage{New: func() (pipeline.BatchTransform, error) { return &counter{}, nil }},
				Batch:  pipeline.Batch{Messages: 10, Every: time.Second},
				Routes: []pipeline.Route{{To: "second"}},
			},
			pipeline.Channel{Name: "second", Sink: &counter{}},
		), actors.Options{})

		pass(10 * time.Second)

		s := g.snapshot(r)
		s.AddCounts()
		s.AddCounts() // counts nothing twice

		got := make(map[string]map[string]int64)

		for _, c := range s.Channels {
			for _, p := range c.Plugins {
				got[c.Name+"/"+p.Stage] = maps.Clone(p.Counts)
			}
		}

		batches := got["second/sink"]["messages"]
		if batches < 10 || batches > 15 {
			t.Errorf("%d batches of 100 messages in three lanes", batches)
		}

		if want := map[string]map[string]int64{
			"first/counts": {"messages": 100}, "first/gather": {"messages": 100}, "second/sink": {"messages": batches},
		}; !reflect.DeepEqual(got, want) {
			t.Errorf("the plugins have counted %v, want %v", got, want)
		}
	})
}
