package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// classify tags an earthquake with its severity.
func classify(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	var quake struct {
		Mag float64 `json:"mag"`
	}
	if err := json.Unmarshal(m.Body, &quake); err != nil {
		return pipeline.Reject(fmt.Errorf("decode: %w", err)) // it will not get better
	}

	m.Tag = "minor"
	if quake.Mag >= 6 {
		m.Tag = "major"
	}

	return emit(m)
}

// A whole job: earthquakes are classified by four lanes that keep the order of each station; the strong ones become
// alerts, and all of them are archived in batches.
func Example() {
	job := pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}, Start: pipeline.First},
		Retry:  pipeline.RetryPolicy{Attempts: 5, DeadLetterTopic: "quakes-dead"},
		Channels: []pipeline.Channel{
			{
				Name:  "classify",
				Lanes: 4,
				Order: pipeline.OrderByKey,
				Stages: []pipeline.Stage{
					pipeline.Func("severity", classify),
					pipeline.Filter("quakes-only", pipeline.PropIs("type", "earthquake")),
				},
				Routes: []pipeline.Route{
					{To: "alerts", When: pipeline.Tagged("major")},
					{To: "archive"},
				},
			},
			{Name: "alerts", Timeout: 5 * time.Second, Sink: pipeline.Discard},
			{Name: "archive", Batch: pipeline.Batch{Messages: 500, Every: 2 * time.Second}, Sink: pipeline.Discard},
		},
	}

	plan, err := pipeline.Compile(job)
	if err != nil {
		fmt.Println(err)

		return
	}

	for _, i := range plan.Order {
		channel := plan.Job.Channels[i]
		fmt.Printf("%s: lanes %d, order %s, time-out %v\n", channel.Name, channel.Lanes, channel.Order, channel.Timeout)
	}
	// Output:
	// classify: lanes 4, order key, time-out 30s
	// alerts: lanes 1, order none, time-out 5s
	// archive: lanes 1, order none, time-out 30s
}

// Compile reports every mistake with its place and its cure.
func ExampleCompile() {
	_, err := pipeline.Compile(pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}},
		Channels: []pipeline.Channel{
			{Name: "classify", Routes: []pipeline.Route{{To: "archiv"}}},
			{Name: "archive", Lanes: -1, Sink: pipeline.Discard},
		},
	})
	fmt.Println(err)

	if broken, ok := errors.AsType[*pipeline.JobError](err); ok {
		fmt.Println(broken.Mistakes[0].Cure)
	}
	// Output:
	// pipeline: job "quakes" has 2 mistakes:
	// 	channels[0] "classify".routes[0].to: no channel "archiv"; did you mean "archive"?
	// 	channels[1] "archive".lanes: it is negative; use a positive value, or 0 for the default
	// did you mean "archive"?
}

// A stage that knows when it is worth trying again says so.
func ExampleRetryAfter() {
	busy := errors.New("the server is busy")
	err := fmt.Errorf("look up: %w", pipeline.RetryAfter(busy, 200*time.Millisecond))

	outcome := pipeline.RetryPolicy{}.Decide(1, err)
	fmt.Println(outcome.Verdict, outcome.Delay, outcome.Err)
	// Output: retry 200ms look up: the server is busy
}

// What will never succeed goes to the dead letters at once.
func ExampleReject() {
	err := pipeline.Reject(errors.New("no such station"))

	outcome := pipeline.RetryPolicy{}.Decide(1, err)
	fmt.Println(outcome.Verdict, outcome.Err)
	// Output: dead letter no such station
}

// A sink names the messages that it could not store; the others are done.
func ExampleBatchError() {
	store := func(m *pipeline.Message) error {
		if len(m.Body) == 0 {
			return pipeline.Reject(io.ErrUnexpectedEOF)
		}

		return nil
	}

	var sink pipeline.Sink = pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		var failures pipeline.BatchError
		for i, m := range batch {
			failures.Fail(i, store(m))
		}

		return failures.Err()
	})

	err := sink.Write(context.Background(), []*pipeline.Message{{Body: []byte("a")}, {}, {Body: []byte("c")}})
	fmt.Println(err)
	// Output: pipeline: 1 of the batch failed; [1] unexpected EOF
}

// What a filter does not pick is finished.
func ExampleFilter() {
	strong := pipeline.Filter("strong", pipeline.Tagged("major", "moderate"))

	stage, err := strong.New()
	if err != nil {
		fmt.Println(err)

		return
	}

	for _, tag := range []string{"minor", "major", "moderate"} {
		_ = stage.Transform(context.Background(), &pipeline.Message{Tag: tag}, func(m *pipeline.Message) error {
			fmt.Println(m.Tag)

			return nil
		})
	}
	// Output:
	// major
	// moderate
}

// Messages of one key stay in one lane.
func ExampleLaneOf() {
	for _, key := range []string{"ak", "us", "nc", "us"} {
		fmt.Println(key, pipeline.LaneOf(&pipeline.Message{Key: key}, pipeline.OrderByKey, 4))
	}
	// Output:
	// ak 0
	// us 3
	// nc 0
	// us 3
}
