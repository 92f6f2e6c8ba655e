package topic

import (
	"testing"

	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

func TestTheTopicSinkIsASink(t *testing.T) {
	t.Parallel()

	pipelinetest.TestSink(t, pipelinetest.Harness{
		New: func(tb testing.TB) (pipeline.Sink, func() []string) {
			tb.Helper()

			broker := consumertest.NewBroker(consumertest.Config{})
			broker.CreateTopic("alerts", 2)
			tb.Cleanup(broker.Close)

			sink, err := New(broker, Options{Name: "alerts"})
			if err != nil {
				tb.Fatal(err)
			}

			return sink, func() []string {
				var bodies []string
				for _, m := range broker.Messages("alerts") {
					bodies = append(bodies, string(m.Body))
				}

				return bodies
			}
		},
	})
}
