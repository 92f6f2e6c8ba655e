package pipeline_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func TestCompileReportsEachMistake(t *testing.T) {
	t.Parallel()

	// All that Compile can find, each made alone in a job that is otherwise right.
	mistakes := []struct {
		name string
		make func(j *pipeline.Job)
		want string
	}{
		{
			"no name", func(j *pipeline.Job) { j.Name = "" },
			`name: it is empty; give it a name of letters, digits, '.', '_' and '-'`,
		},
		{
			"illegal name", func(j *pipeline.Job) { j.Name = "quäkes" },
			`name: "quäkes" is not a legal name; use only letters, digits, '.', '_' and '-'`,
		},
		{
			"no topics", func(j *pipeline.Job) { j.Source.Topics = nil },
			`source.topics: there are none; name at least one topic to read`,
		},
		{
			"empty topic", func(j *pipeline.Job) { j.Source.Topics = []string{"quakes", ""} },
			`source.topics[1]: it is empty; name a topic or remove it`,
		},
		{
			"topic twice", func(j *pipeline.Job) { j.Source.Topics = []string{"quakes", "tides", "quakes"} },
			`source.topics[2]: topic "quakes" is there already; remove it`,
		},
		{
			"no channels", func(j *pipeline.Job) { j.Source.To, j.Channels = "", nil },
			`channels: there are none; add at least one`,
		},
		{
			"unknown entry, nearly right", func(j *pipeline.Job) { j.Source.To = "Clasify" },
			`source.to: no channel "Clasify"; did you mean "classify"?`,
		},
		{
			"unknown entry, far off", func(j *pipeline.Job) { j.Source.To = "somewhere" },
			`source.to: no channel "somewhere"; there are: classify, alerts, archive`,
		},
		{
			"channel without a name", func(j *pipeline.Job) {
				j.Channels = append(j.Channels, pipeline.Channel{Sink: pipeline.Discard})
			},
			`channels[3].name: it is empty; give it a name of letters, digits, '.', '_' and '-'`,
		},
		{
			"first channel without a name", func(j *pipeline.Job) { j.Source.To, j.Channels[0].Name = "", "" },
			`channels[0].name: it is empty; give it a name of letters, digits, '.', '_' and '-'`,
		},
		{
			"channel with an illegal name", func(j *pipeline.Job) {
				j.Channels[2].Name, j.Channels[0].Routes[1].To = "a/b", "a/b"
			},
			`channels[2] "a/b".name: "a/b" is not a legal name; use only letters, digits, '.', '_' and '-'`,
		},
		{
			"channel name twice", func(j *pipeline.Job) {
				j.Channels = append(j.Channels, pipeline.Channel{Name: "alerts", Sink: pipeline.Discard})
			},
			`channels[3] "alerts".name: channels[1] has the same name; rename one of them`,
		},
		{
			"negative lanes", func(j *pipeline.Job) { j.Channels[1].Lanes = -1 },
			`channels[1] "alerts".lanes: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"too many lanes", func(j *pipeline.Job) { j.Channels[1].Lanes = 4097 },
			`channels[1] "alerts".lanes: 4097 lanes are too many; use at most 4096`,
		},
		{
			"order out of range", func(j *pipeline.Job) { j.Channels[0].Order = 3 },
			`channels[0] "classify".order: unknown order; use OrderNone, OrderByKey or OrderByQueue`,
		},
		{
			"negative time-out", func(j *pipeline.Job) { j.Channels[1].Timeout = -time.Second },
			`channels[1] "alerts".timeout: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"negative batch size", func(j *pipeline.Job) { j.Channels[1].Batch.Messages = -1 },
			`channels[1] "alerts".batch.messages: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"negative batch bytes", func(j *pipeline.Job) { j.Channels[1].Batch.Bytes = -1 },
			`channels[1] "alerts".batch.bytes: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"negative batch wait", func(j *pipeline.Job) { j.Channels[1].Batch.Every = -1 },
			`channels[1] "alerts".batch.every: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"batch without a taker", func(j *pipeline.Job) { j.Channels[0].Batch.Messages = 10 },
			`channels[0] "classify".batch: nothing in the channel takes batches; ` +
				`remove it, or move it to a channel with a sink or a gather`,
		},
		{
			"stage without a name", func(j *pipeline.Job) { j.Channels[0].Stages[0].Name = "" },
			`channels[0] "classify".stages[0].name: it is empty; give it a name of letters, digits, '.', '_' and '-'`,
		},
		{
			"stage name twice", func(j *pipeline.Job) { j.Channels[0].Stages[1].Name = "decode" },
			`channels[0] "classify".stages[1].name: stages[0] has the same name; rename one of them`,
		},
		{
			"stage with the sink's name", func(j *pipeline.Job) { j.Channels[0].Stages[1].Name = "sink" },
			`channels[0] "classify".stages[1].name: "sink" is what reports call the end of a channel; rename the stage`,
		},
		{
			"stage with the gather's name", func(j *pipeline.Job) { j.Channels[0].Stages[1].Name = "gather" },
			`channels[0] "classify".stages[1].name: "gather" is what reports call the end of a channel; rename the stage`,
		},
		{
			"stage without New", func(j *pipeline.Job) { j.Channels[0].Stages[1].New = nil },
			`channels[0] "classify".stages[1].new: it is nil; give it a function that makes the transform`,
		},
		{
			"Func of nil", func(j *pipeline.Job) { j.Channels[0].Stages[1] = pipeline.Func("nil", nil) },
			`channels[0] "classify".stages[1].new: it is nil; give it a function that makes the transform`,
		},
		{
			"Filter of nil", func(j *pipeline.Job) { j.Channels[0].Stages[1] = pipeline.Filter("nil", nil) },
			`channels[0] "classify".stages[1].new: it is nil; give it a function that makes the transform`,
		},
		{
			"gather without New", func(j *pipeline.Job) { j.Channels[0].Gather = &pipeline.GatherStage{} },
			`channels[0] "classify".gather.new: it is nil; give it a function that makes the batch transform`,
		},
		{
			"gather with a stage's name", func(j *pipeline.Job) {
				j.Channels[0].Gather = &pipeline.GatherStage{Name: "decode", New: newGather}
			},
			`channels[0] "classify".gather.name: stages[0] has the same name; rename one of them`,
		},
		{
			"gather with the sink's name", func(j *pipeline.Job) {
				j.Channels[0].Gather = &pipeline.GatherStage{Name: "sink", New: newGather}
			},
			`channels[0] "classify".gather.name: "sink" is what reports call the end of a channel; rename the stage`,
		},
		{
			"gather and sink", func(j *pipeline.Job) { j.Channels[1].Gather = &pipeline.GatherStage{New: newGather} },
			`channels[1] "alerts".sink: the channel has a gather too; ` +
				`route the gather's outputs to another channel with this sink`,
		},
		{
			"gather to nowhere", func(j *pipeline.Job) {
				j.Channels[1].Sink, j.Channels[1].Gather = nil, &pipeline.GatherStage{New: newGather}
			},
			`channels[1] "alerts".routes: the outputs of the gather go nowhere; give the channel a route`,
		},
		{
			"sink and routes", func(j *pipeline.Job) { j.Channels[0].Sink = pipeline.Discard },
			`channels[0] "classify".sink: the channel has routes too; ` +
				`remove the routes, or route to another channel with this sink`,
		},
		{
			"neither sink nor routes", func(j *pipeline.Job) { j.Channels[1].Sink = nil },
			`channels[1] "alerts".sink: the outputs of the channel go nowhere; ` +
				`give it a sink, a route, or pipeline.Discard`,
		},
		{
			"dangling route, nearly right", func(j *pipeline.Job) { j.Channels[0].Routes[1].To = "archiv" },
			`channels[0] "classify".routes[1].to: no channel "archiv"; did you mean "archive"?`,
		},
		{
			"dangling route, far off", func(j *pipeline.Job) {
				j.Channels[0].Routes = append(j.Channels[0].Routes, pipeline.Route{To: "nowhere"})
			},
			`channels[0] "classify".routes[2].to: no channel "nowhere"; there are: classify, alerts, archive`,
		},
		{
			"route to nothing", func(j *pipeline.Job) {
				j.Channels[0].Routes = append(j.Channels[0].Routes, pipeline.Route{})
			},
			`channels[0] "classify".routes[2].to: it is empty; there are: classify, alerts, archive`,
		},
		{
			"route to itself", func(j *pipeline.Job) {
				j.Channels[0].Routes = append(j.Channels[0].Routes, pipeline.Route{To: "classify"})
			},
			`channels[0] "classify".routes[2].to: the routes go in a circle: classify -> classify; ` +
				`remove one of them, or publish to a topic that the job reads to go round again`,
		},
		{
			"cycle", func(j *pipeline.Job) {
				j.Channels[1].Sink, j.Channels[1].Routes = nil, []pipeline.Route{{To: "archive"}}
				j.Channels[2].Sink, j.Channels[2].Routes = nil, []pipeline.Route{{To: "alerts"}}
				j.Channels[0].Routes = j.Channels[0].Routes[:1]
			},
			`channels[2] "archive".routes[0].to: the routes go in a circle: alerts -> archive -> alerts; ` +
				`remove one of them, or publish to a topic that the job reads to go round again`,
		},
		{
			"unreachable channel", func(j *pipeline.Job) { j.Channels[0].Routes = j.Channels[0].Routes[:1] },
			`channels[2] "archive".name: no message gets here; ` +
				`route to it from a channel that "classify" leads to, or remove it`,
		},
		{
			"key order below none", func(j *pipeline.Job) { j.Channels[1].Order = pipeline.OrderByKey },
			`channels[1] "alerts".order: routes[0] of channel "classify", whose order is none, brings messages out of order; ` +
				`use order key or queue in "classify", or order none here`,
		},
		{
			"queue order below key", func(j *pipeline.Job) {
				j.Channels[0].Order, j.Channels[1].Order = pipeline.OrderByKey, pipeline.OrderByQueue
			},
			`channels[1] "alerts".order: routes[0] of channel "classify", whose order is key, brings messages out of order; ` +
				`use order queue in "classify", or order none here`,
		},
		{
			"order below two channels", func(j *pipeline.Job) {
				j.Channels[0].Order, j.Channels[1].Order = pipeline.OrderByKey, pipeline.OrderByKey
				j.Channels[1].Sink, j.Channels[1].Routes = nil, []pipeline.Route{{To: "archive"}}
				j.Channels[2].Order = pipeline.OrderByKey
			},
			`channels[2] "archive".order: it is fed by classify and alerts, which overtake each other; ` +
				`let one channel feed it, or use order none`,
		},
		{
			"negative attempts", func(j *pipeline.Job) { j.Retry.Attempts = -1 },
			`retry.attempts: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"negative delay", func(j *pipeline.Job) { j.Retry.Delays = []time.Duration{1, -1} },
			`retry.delays[1]: it is negative; use a positive value, or 0 for the default`,
		},
		{
			"dead letters of a broadcast job", func(j *pipeline.Job) {
				j.Source.Broadcast, j.Retry.DeadLetterTopic = true, "dead"
			},
			`retry.deadLetterTopic: a broadcast job drops what fails, it has no dead letters; ` +
				`remove the topic, or source.broadcast`,
		},
		{
			"dead letters go to a topic of the source", func(j *pipeline.Job) { j.Retry.DeadLetterTopic = "quakes" },
			`retry.deadLetterTopic: the job reads its own dead letters in "quakes", round and round; ` +
				`let them go to another topic, or read them by another job`,
		},
		{
			"source is the group's dead-letter topic", func(j *pipeline.Job) {
				j.Source.Group, j.Source.Topics = "g", []string{"%DLQ%g"}
			},
			`retry.deadLetterTopic: the job reads its own dead letters in "%DLQ%g", round and round; ` +
				`let them go to another topic, or read them by another job`,
		},
	}

	compile(t, sound())

	for _, test := range mistakes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()

			job := sound()
			test.make(&job)

			if got, want := mistakesOf(t, job), []string{test.want}; !slices.Equal(got, want) {
				t.Errorf("mistakes:\n%s\nwant:\n%s", strings.Join(got, "\n"), test.want)
			}
		})
	}
}

func TestCompileReportsAllMistakesAtOnce(t *testing.T) {
	t.Parallel()

	job := pipeline.Job{
		Source: pipeline.Source{Topics: []string{""}},
		Channels: []pipeline.Channel{
			{Name: "classify", Routes: []pipeline.Route{{To: "archiv"}, {To: "classify"}}},
			{Name: "archive", Lanes: -1, Sink: pipeline.Discard},
			{Name: "lonely", Sink: pipeline.Discard, Stages: []pipeline.Stage{{Name: "sink"}}},
		},
		Retry: pipeline.RetryPolicy{Attempts: -1},
	}

	got := mistakesOf(t, job)
	want := []string{
		`name`, `source.topics[0]`, `channels[0] "classify".routes[0].to`, `channels[1] "archive".lanes`,
		`channels[2] "lonely".stages[0].name`, `channels[2] "lonely".stages[0].new`,
		`channels[0] "classify".routes[1].to`, `channels[2] "lonely".name`, `retry.attempts`,
	}

	for i := range got {
		got[i], _, _ = strings.Cut(got[i], ":")
	}

	if !slices.Equal(got, want) {
		t.Errorf("paths:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestJobErrorHasALineForEachMistake(t *testing.T) {
	t.Parallel()

	err := &pipeline.JobError{Job: "quakes", Mistakes: []pipeline.Mistake{{Path: "a", Problem: "b", Cure: "c"}}}
	if got, want := err.Error(), `pipeline: job "quakes": a: b; c`; got != want {
		t.Errorf("one mistake: %q, want %q", got, want)
	}

	err.Mistakes = append(err.Mistakes, pipeline.Mistake{Path: "d", Problem: "e", Cure: "f"})
	if got, want := err.Error(), "pipeline: job \"quakes\" has 2 mistakes:\n\ta: b; c\n\td: e; f"; got != want {
		t.Errorf("two mistakes: %q, want %q", got, want)
	}
}

func TestAnOrderIsKeptBelowTheSameOrAStrongerOne(t *testing.T) {
	t.Parallel()

	for _, orders := range [][2]pipeline.Order{
		{pipeline.OrderByKey, pipeline.OrderByKey},
		{pipeline.OrderByQueue, pipeline.OrderByKey},
		{pipeline.OrderByQueue, pipeline.OrderByQueue},
		{pipeline.OrderByQueue, pipeline.OrderNone},
		{pipeline.OrderByKey, pipeline.OrderNone},
	} {
		job := sound()
		job.Channels[0].Order, job.Channels[1].Order = orders[0], orders[1]
		// Two routes from one channel are sent by one lane, in order.
		job.Channels[0].Routes = append(job.Channels[0].Routes, pipeline.Route{To: "alerts", When: pipeline.Tagged("x")})

		compile(t, job)
	}
}

// sound returns a job without mistakes: classify -> alerts, archive.
func sound() pipeline.Job {
	return pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}, To: "classify"},
		Channels: []pipeline.Channel{
			{
				Name:   "classify",
				Stages: []pipeline.Stage{{Name: "decode", New: newPass}, {Name: "severity", New: newPass}},
				Routes: []pipeline.Route{{To: "alerts"}, {To: "archive"}},
			},
			{Name: "alerts", Sink: pipeline.Discard},
			{Name: "archive", Sink: pipeline.Discard},
		},
	}
}

func mistakesOf(t *testing.T, j pipeline.Job) []string {
	t.Helper()

	_, err := pipeline.Compile(j)

	failure, ok := errors.AsType[*pipeline.JobError](err)
	if !ok {
		t.Fatalf("error %v, want a *JobError", err)
	}

	if failure.Job != j.Name {
		t.Errorf("the error names job %q, want %q", failure.Job, j.Name)
	}

	all := make([]string, len(failure.Mistakes))
	for i, m := range failure.Mistakes {
		all[i] = m.String()
	}

	return all
}

func pass(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error { return emit(m) }

func gatherNothing(context.Context, []*pipeline.Message, pipeline.Emit) error { return nil }
