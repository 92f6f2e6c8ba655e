package pipeline_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func TestCompileFillsInDefaults(t *testing.T) {
	t.Parallel()

	plan := compile(t, pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}},
		Channels: []pipeline.Channel{
			{Name: "first", Routes: []pipeline.Route{{To: "sized"}, {To: "timed"}, {To: "plain"}, {To: "gathered"}}},
			{Name: "sized", Sink: pipeline.Discard, Batch: pipeline.Batch{Bytes: 1 << 20}},
			{Name: "timed", Sink: pipeline.Discard, Batch: pipeline.Batch{Every: time.Minute}},
			{Name: "plain", Sink: pipeline.Discard, Lanes: 3, Timeout: time.Second},
			{Name: "gathered", Gather: &pipeline.GatherStage{New: newGather}, Routes: []pipeline.Route{{To: "plain"}}},
		},
	})

	if got := plan.Job.Source; got.Group != "quakes" || got.To != "first" {
		t.Errorf("source %+v, want the job's name as the group and the first channel as the entry", got)
	}

	if got := plan.Job.Retry; got.Attempts != 16 || len(got.Delays) != 15 || got.Delays[0] != 10*time.Second {
		t.Errorf("retry policy %+v, want 16 attempts and a ladder from 10s to 1h", got)
	}

	want := []pipeline.Batch{
		{},
		{Messages: 256, Bytes: 1 << 20, Every: time.Second},
		{Messages: 256, Every: time.Minute},
		{Messages: 256},
		{Messages: 256},
	}
	for i, channel := range plan.Job.Channels {
		if channel.Batch != want[i] {
			t.Errorf("channel %q: batch %+v, want %+v", channel.Name, channel.Batch, want[i])
		}
	}

	if first, plain := plan.Job.Channels[0], plan.Job.Channels[3]; first.Lanes != 1 || first.Timeout != 30*time.Second ||
		plain.Lanes != 3 || plain.Timeout != time.Second {
		t.Errorf("lanes and time-outs %d %v and %d %v, want 1 30s and 3 1s", first.Lanes, first.Timeout, plain.Lanes, plain.Timeout)
	}

	if got := plan.Job.Channels[4].Gather.Name; got != "gather" {
		t.Errorf("gather is called %q, want %q", got, "gather")
	}
}

func TestPlanSharesNothingWithItsJob(t *testing.T) {
	t.Parallel()

	build := func() pipeline.Job {
		return pipeline.Job{
			Name:   "quakes",
			Source: pipeline.Source{Topics: []string{"quakes"}},
			Channels: []pipeline.Channel{
				{
					Name: "first", Stages: []pipeline.Stage{{Name: "pass", New: newPass}},
					Gather: &pipeline.GatherStage{Name: "sum", New: newGather}, Routes: []pipeline.Route{{To: "last"}},
				},
				{Name: "last", Sink: pipeline.Discard},
			},
			Retry: pipeline.RetryPolicy{Delays: []time.Duration{time.Second}},
		}
	}

	job := build()
	plan, untouched := compile(t, job), compile(t, build())

	job.Source.Topics[0] = "x"
	job.Channels[0].Stages[0].Name = "x"
	job.Channels[0].Gather.Name = "x"
	job.Channels[0].Routes[0].To = "x"
	job.Channels[1].Name = "x"
	job.Retry.Delays[0] = time.Hour

	if got, want := shape(plan), shape(untouched); !reflect.DeepEqual(got, want) {
		t.Errorf("after a change of the job the plan is %v, want %v", got, want)
	}
}

func TestDefaultLadderCannotBeChangedThroughAPlan(t *testing.T) {
	t.Parallel()

	compile(t, minimal()).Job.Retry.Delays[0] = time.Nanosecond

	if got := compile(t, minimal()).Job.Retry.Delays[0]; got != 10*time.Second {
		t.Errorf("first delay %v, want 10s", got)
	}
}

func TestPlanResolvesRoutes(t *testing.T) {
	t.Parallel()

	plan := compile(t, pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}, To: "classify"},
		Channels: []pipeline.Channel{
			{Name: "archive", Sink: pipeline.Discard},
			{Name: "alerts", Order: pipeline.OrderByKey, Routes: []pipeline.Route{{To: "enrich"}, {To: "archive"}}},
			{Name: "classify", Order: pipeline.OrderByQueue, Routes: []pipeline.Route{{To: "alerts"}, {To: "archive"}}},
			{Name: "enrich", Routes: []pipeline.Route{{To: "archive"}}},
		},
	})

	if plan.Entry != 2 {
		t.Errorf("entry %d, want 2", plan.Entry)
	}

	if want := []int{2, 1, 3, 0}; !slices.Equal(plan.Order, want) {
		t.Errorf("order %v, want %v", plan.Order, want)
	}

	if want := [][]int{{}, {3, 0}, {1, 0}, {0}}; !reflect.DeepEqual(plan.Targets, want) {
		t.Errorf("targets %v, want %v", plan.Targets, want)
	}

	for i, channel := range plan.Job.Channels {
		if got, ok := plan.Index(channel.Name); !ok || got != i {
			t.Errorf("index of %q is %d, %v, want %d", channel.Name, got, ok, i)
		}
	}

	if i, ok := plan.Index("nowhere"); ok {
		t.Errorf("a channel that is not there has index %d", i)
	}
}

func TestFailuresBelowAnOrderedChannelAreRetriedInPlace(t *testing.T) {
	t.Parallel()

	job := pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}},
		Channels: []pipeline.Channel{
			{Name: "a", Routes: []pipeline.Route{{To: "b"}}},
			{Name: "b", Routes: []pipeline.Route{{To: "c"}}},
			{Name: "c", Sink: pipeline.Discard},
		},
	}

	if got, want := compile(t, job).InPlace, []bool{false, false, false}; !slices.Equal(got, want) {
		t.Errorf("without any order: in place %v, want %v", got, want)
	}

	job.Channels[0].Order = pipeline.OrderByKey

	if got, want := compile(t, job).InPlace, []bool{true, true, true}; !slices.Equal(got, want) {
		t.Errorf("below an ordered entry: in place %v, want %v", got, want)
	}
}

// shape is what a plan says in words that can be compared, functions left out.
func shape(p *pipeline.Plan) []any {
	all := []any{p.Job.Source.Topics, p.Job.Retry.Delays}
	for _, c := range p.Job.Channels {
		all = append(all, c.Name, c.Gather == nil)
		if c.Gather != nil {
			all = append(all, c.Gather.Name)
		}

		for _, s := range c.Stages {
			all = append(all, s.Name)
		}

		for _, r := range c.Routes {
			all = append(all, r.To)
		}
	}

	return all
}

func minimal() pipeline.Job {
	return pipeline.Job{
		Name:     "quakes",
		Source:   pipeline.Source{Topics: []string{"quakes"}},
		Channels: []pipeline.Channel{{Name: "only", Sink: pipeline.Discard}},
	}
}

func compile(t *testing.T, j pipeline.Job) *pipeline.Plan {
	t.Helper()

	plan, err := pipeline.Compile(j)
	if err != nil {
		t.Fatal(err)
	}

	return plan
}

func newPass() (pipeline.Transform, error) {
	return pipeline.TransformFunc(pass), nil
}

func newGather() (pipeline.BatchTransform, error) {
	return pipeline.BatchTransformFunc(gatherNothing), nil
}
