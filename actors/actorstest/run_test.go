package actorstest_test

import (
	"context"
	"testing"
	"time"

	"github.com/millrace/millrace/actors/actorstest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

func TestPlainJobKeepsEveryRule(t *testing.T) {
	t.Parallel()

	actorstest.Run(t, func(plugins.Env) (pipeline.Job, error) {
		return pipeline.Job{
			Name: "plain", Source: pipeline.Source{Topics: []string{"in"}},
			Channels: []pipeline.Channel{{Name: "store", Lanes: 3, Sink: pipeline.Discard}},
		}, nil
	}, actorstest.Plan{Runs: 10})
}

// fan splits messages, filters some, sends them two ways, batches and gathers them.
func fan(plugins.Env) (pipeline.Job, error) {
	split := func(name string) pipeline.Stage {
		return pipeline.Func(name, func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
			for i := range len(m.Body) % 4 {
				out := m.Clone()
				out.SetProp("part", string(rune('a'+i)))

				if err := emit(out); err != nil {
					return err
				}
			}

			return nil
		})
	}
	pairs := pipeline.BatchTransformFunc(func(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error {
		for i := 0; i < len(batch); i += 2 {
			if err := emit(batch[i]); err != nil {
				return err
			}
		}

		return nil
	})

	return pipeline.Job{
		Name: "fan", Source: pipeline.Source{Topics: []string{"in", "other"}},
		Retry: pipeline.RetryPolicy{Attempts: 4, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{
			{
				Name: "split", Lanes: 2, Stages: []pipeline.Stage{split("one"), split("two")},
				Routes: []pipeline.Route{
					{To: "pairs"},
					{To: "few", When: func(m *pipeline.Message) bool { return m.Props["part"] == "a" }},
					{To: "all"},
				},
			},
			{
				Name: "pairs", Lanes: 2, Batch: pipeline.Batch{Messages: 6, Every: time.Second},
				Gather: &pipeline.GatherStage{New: func() (pipeline.BatchTransform, error) { return pairs, nil }},
				Routes: []pipeline.Route{{To: "end"}, {To: "all"}},
			},
			{Name: "few", Sink: pipeline.Discard},
			{Name: "all", Lanes: 2, Batch: pipeline.Batch{Messages: 10, Every: 3 * time.Second}, Sink: pipeline.Discard},
			{Name: "end", Stages: []pipeline.Stage{split("split")}, Sink: pipeline.Discard},
		},
	}, nil
}

func TestJobThatFansOutAndGathersKeepsEveryRule(t *testing.T) {
	t.Parallel()

	actorstest.Run(t, fan, actorstest.Plan{Runs: 10})
}

func TestOrderedJobKeepsEveryRule(t *testing.T) {
	t.Parallel()

	actorstest.Run(t, func(plugins.Env) (pipeline.Job, error) {
		pass := func(name string) pipeline.Stage {
			return pipeline.Filter(name, func(*pipeline.Message) bool { return true })
		}

		return pipeline.Job{
			Name: "ordered", Source: pipeline.Source{Topics: []string{"in"}},
			Channels: []pipeline.Channel{
				{Name: "first", Lanes: 3, Order: pipeline.OrderByKey, Stages: []pipeline.Stage{pass("one"), pass("two")}, Routes: []pipeline.Route{{To: "store"}}},
				{
					Name: "store", Lanes: 2, Order: pipeline.OrderByKey, Batch: pipeline.Batch{Messages: 5, Every: time.Second}, Sink: pipeline.Discard,
				},
			},
		}, nil
	}, actorstest.Plan{Runs: 10})
}

// A job file is a job like any other.
func TestJobOfAFileKeepsEveryRule(t *testing.T) {
	t.Parallel()

	const text = `
name: orders
broker: { embedded: ./data }
source: { topic: in }
channels:
  sift:
    stages:
      - filter: body.n % 3 != 0
    sink: discard
`

	var registry plugins.Registry
	if err := standard.Register(&registry); err != nil {
		t.Fatal(err)
	}

	file, err := jobfile.Parse("job.yaml", []byte(text), &registry, jobfile.Variables{})
	if err != nil {
		t.Fatal(err)
	}

	actorstest.Run(t, file.Jobs[0].Build, actorstest.Plan{
		Runs: 5,
		Check: func(t *testing.T, r *actorstest.Result) {
			t.Helper()

			for n, end := range r.Ends {
				if written := n%3 != 0; end.Dead || (end.Writes > 0) != written {
					t.Errorf("%+v", end)
				}
			}
		},
	})
}
