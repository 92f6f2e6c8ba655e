package rocketmqtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const (
	readyTimeout = 90 * time.Second // two to four are common
	readyPause   = 50 * time.Millisecond
)

// ready asks whether the process can be used until it can, over a new connection each time, since a client holds back from
// a server that did not answer before. It gives up when the process has ended.
func (p *process) ready(
	ctx context.Context, o remoting.Options, ask func(ctx context.Context, client *remoting.Client) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()

	tick := time.NewTicker(readyPause)
	defer tick.Stop()

	for {
		client := remoting.NewClient(o)
		err := ask(ctx, client)

		client.Close()

		if err == nil {
			return nil
		}

		select {
		case <-p.exited:
			return fmt.Errorf("rocketmqtest: %s has ended: %w\n%s", p.name, errors.Join(p.err, err), p.output())
		case <-ctx.Done():
			return fmt.Errorf("rocketmqtest: %s is not ready within %v: %w\n%s", p.name, readyTimeout, err, p.output())
		case <-tick.C:
		}
	}
}

// answers fails unless a server answers a request, whatever it says.
func answers(ctx context.Context, client *remoting.Client, addr string, request *remoting.Command) error {
	_, err := client.Call(ctx, addr, request)
	if _, answered := errors.AsType[*remoting.ResponseError](err); answered {
		return nil
	}

	return err
}

func routeOf(topic string) *remoting.Command {
	return &remoting.Command{
		Code: remoting.GetRouteInfo, Ext: map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"},
	}
}

// registered fails unless the name server knows the broker. It asks for the topic that every broker has.
func registered(ctx context.Context, client *remoting.Client, nameServer, broker string) error {
	response, err := client.Call(ctx, nameServer, routeOf("TBW102"))
	if err != nil {
		return err
	}

	var route struct {
		BrokerDatas []struct {
			BrokerName string `json:"brokerName"`
		} `json:"brokerDatas"`
	}

	if err := json.Unmarshal(response.Body, &route); err != nil {
		return fmt.Errorf("route of TBW102: %w", err)
	}

	for _, known := range route.BrokerDatas {
		if known.BrokerName == broker {
			return nil
		}
	}

	return fmt.Errorf("the name server does not know %s", broker)
}

// updateBrokerConfig is the request that changes a running broker's settings.
const updateBrokerConfig = 25

// register makes a broker register at once. One that started faster than its connection to the name server does so by itself
// only after ten seconds. It is a change of configuration that has this effect; the value is the one that holds already.
func register(ctx context.Context, client *remoting.Client, addr string) {
	_, _ = client.Call(ctx, addr, &remoting.Command{Code: updateBrokerConfig, Body: []byte("brokerPermission=6\n")})
}
