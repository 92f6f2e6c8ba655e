package topic_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/topic"
)

func ExampleSink() {
	broker := consumertest.NewBroker(consumertest.Config{})
	defer broker.Close()

	broker.CreateTopic("alerts", 1)

	alerts, err := topic.New(broker, topic.Options{Name: "alerts"})
	if err != nil {
		fmt.Println(err)

		return
	}

	// The sink of a channel of one job; another job has alerts as its source.
	err = alerts.Write(context.Background(), []*pipeline.Message{{Key: "us1000chhc", Tag: "major", Body: []byte(`"M 6.4"`)}})
	for _, m := range broker.Messages("alerts") {
		fmt.Println(m.Key, m.Tag, string(m.Body), err)
	}
	// Output: us1000chhc major "M 6.4" <nil>
}
