package actors_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// The README shows this job. A test of the documents compares the two.
func Example_readme() {
	broker := consumertest.NewBroker(consumertest.Config{})
	defer broker.Close()

	broker.CreateTopic("quakes", 1)

	for _, body := range []string{`{"mag": 2.4}`, `what?`, `{"mag": 4.9}`, `{"mag": 6.1}`} {
		_ = broker.Publish(context.Background(), "quakes", []*pipeline.Message{{Body: []byte(body)}})
	}

	ctx, stop := context.WithCancel(context.Background())
	archived := 0

	alerts := pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		for _, m := range batch {
			fmt.Println("alert:", string(m.Body))
		}

		stop()

		return nil
	})
	archive := pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		archived += len(batch)

		return nil
	})

	job := pipeline.Job{
		Name:   "quakes",
		Source: pipeline.Source{Topics: []string{"quakes"}, Start: pipeline.First},
		Retry:  pipeline.RetryPolicy{Attempts: 5, Delays: []time.Duration{time.Second, time.Minute}},
		Channels: []pipeline.Channel{
			{
				Name: "classify", Lanes: 4, Order: pipeline.OrderByKey,
				Stages: []pipeline.Stage{
					pipeline.Func("severity", func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
						var quake struct {
							Mag float64 `json:"mag"`
						}

						if err := json.Unmarshal(m.Body, &quake); err != nil {
							return pipeline.Reject(err) // never going to work: to the dead letters
						}

						m.Tag = "minor"
						if quake.Mag >= 6 {
							m.Tag = "major"
						}

						return emit(m)
					}),
				},
				Routes: []pipeline.Route{{To: "alerts", When: pipeline.Tagged("major")}, {To: "archive"}},
			},
			{Name: "alerts", Order: pipeline.OrderByKey, Sink: alerts},
			{Name: "archive", Order: pipeline.OrderByKey, Batch: pipeline.Batch{Messages: 500, Every: time.Second}, Sink: archive},
		},
	}

	err := actors.Run(ctx, job, broker, actors.Options{}) // until ctx ends and the job has drained; the error says what is unfinished

	fmt.Println("archived:", archived, "dead letters:", len(broker.Messages("%DLQ%quakes")), "error:", err)
	// Output:
	// alert: {"mag": 6.1}
	// archived: 3 dead letters: 1 error: <nil>
}
