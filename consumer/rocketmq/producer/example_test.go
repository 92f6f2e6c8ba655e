package producer_test

import (
	"context"
	"fmt"

	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

func ExampleProducer() {
	cluster, err := rocketmqfake.New(rocketmqfake.Options{TCP: true})
	if err != nil {
		fmt.Println(err)

		return
	}
	defer cluster.Close()

	cluster.CreateTopic("orders", 1)

	p, err := producer.New(producer.Options{NameServers: []string{cluster.NameServer}})
	if err != nil {
		fmt.Println(err)

		return
	}

	defer func() { _ = p.Close() }()

	sent, err := p.Send(context.Background(), "orders", producer.Message{Key: "order-7", Tag: "paid", Body: []byte("{}")})
	fmt.Println(sent.Queue, sent.Offset, err)
	// Output: orders@b0/0 0 <nil>
}
