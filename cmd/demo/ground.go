package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/admin"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

// ground is what the jobs of a run stand on.
type ground struct {
	consumer.Broker
	consumer.Publisher

	createTopic func(ctx context.Context, topic string, queues int) error
	close       func() error
	// clear removes from a cluster what the runs have made there; nil where the directory is all there is.
	clear func(ctx context.Context) error
}

// rocketmqScheme is what the address of a cluster begins with.
const rocketmqScheme = "rocketmq://"

// openGround opens the embedded broker in a directory, or the cluster that was asked for, where space keeps apart what is of
// other directories.
func openGround(broker, dir, space string) (*ground, error) {
	servers, isCluster := strings.CutPrefix(broker, rocketmqScheme)
	if isCluster {
		return openCluster(strings.Split(servers, ","), dir, space)
	}

	b, err := embedded.Open(embedded.Options{Dir: filepath.Join(dir, "broker")})
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}

	return &ground{Broker: b, Publisher: b, createTopic: b.CreateTopic, close: b.Close}, nil
}

func openCluster(nameServers []string, dir, space string) (g *ground, err error) {
	broker, err := rocketmq.Open(rocketmq.Options{
		NameServers: nameServers, Namespace: space, OffsetDir: filepath.Join(dir, "offsets"),
	})
	if err != nil {
		return nil, fmt.Errorf("demo: -broker: %w", err)
	}

	publisher, err := producer.New(producer.Options{NameServers: nameServers, Namespace: routes.Namespace(space)})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("demo: -broker: %w", err), broker.Close())
	}

	keeper, err := admin.Open(admin.Options{NameServers: nameServers, Namespace: routes.Namespace(space)})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("demo: -broker: %w", err), publisher.Close(), broker.Close())
	}

	return &ground{
		Broker: broker, Publisher: publisher, createTopic: keeper.CreateTopic, clear: keeper.Clear,
		close: func() error {
			keeper.Close()

			return errors.Join(publisher.Close(), broker.Close())
		},
	}, nil
}
