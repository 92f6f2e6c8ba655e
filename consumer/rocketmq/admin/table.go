package admin

import (
	"encoding/json"
	"fmt"

	"github.com/millrace/millrace/consumer/rocketmq/loosejson"
	"github.com/millrace/millrace/pipeline"
)

// decode reads JSON as RocketMQ writes it.
func decode(body []byte, into any) error {
	strict, err := loosejson.Strict(body)
	if err != nil {
		return err //nolint:wrapcheck // who calls says of what
	}

	return json.Unmarshal(strict, into) //nolint:wrapcheck // as above
}

// readTable reads {"offsetTable":{queue:value}}, where a queue is an object.
func readTable[V any](body []byte) (map[pipeline.Queue]V, error) {
	var table struct {
		Offsets map[string]V `json:"offsetTable"`
	}

	if err := decode(body, &table); err != nil {
		return nil, err
	}

	byQueue := make(map[pipeline.Queue]V, len(table.Offsets))

	for key, value := range table.Offsets {
		var q struct {
			Broker string `json:"brokerName"`
			Queue  int    `json:"queueId"`
			Topic  string `json:"topic"`
		}

		if err := json.Unmarshal([]byte(key), &q); err != nil {
			return nil, fmt.Errorf("the queue %q: %w", key, err)
		}

		if q.Queue < 0 {
			return nil, fmt.Errorf("the queue %q has a number below 0", key)
		}

		byQueue[pipeline.Queue{Topic: q.Topic, Broker: q.Broker, ID: q.Queue}] = value
	}

	return byQueue, nil
}
