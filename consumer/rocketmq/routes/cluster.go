package routes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// Requests of lists to name servers.
const allTopics = 206

// Broker is a broker as the name servers know it.
type Broker struct {
	// Cluster and Name are the broker's cluster and its name.
	Cluster, Name string
	// Addrs are the addresses of its processes by their ids; 0 is the master's.
	Addrs map[int]string
}

// Brokers returns the brokers that the name servers know, sorted by cluster and name. It fails as Ask does.
func (t *Table) Brokers(ctx context.Context) ([]Broker, error) {
	got, err := t.Ask(ctx, &remoting.Command{Code: remoting.GetClusterInfo})
	if err != nil {
		return nil, err
	}

	var info struct {
		Brokers map[string]struct {
			Cluster string            `json:"cluster"`
			Addrs   map[string]string `json:"brokerAddrs"`
		} `json:"brokerAddrTable"`
	}

	if err := decode(got.Body, &info); err != nil {
		return nil, fmt.Errorf("rocketmq: the list of brokers: %w", err)
	}

	all := make([]Broker, 0, len(info.Brokers))
	for name, b := range info.Brokers {
		all = append(all, Broker{Cluster: b.Cluster, Name: name, Addrs: addresses(b.Addrs)})
	}

	slices.SortFunc(all, func(a, b Broker) int { return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Name, b.Name)) })

	return all, nil
}

// addresses returns the addresses that make sense by their ids.
func addresses(byID map[string]string) map[int]string {
	addrs := map[int]string{}

	for id, addr := range byID {
		if n, err := strconv.Atoi(id); err == nil && n >= 0 && addr != "" {
			addrs[n] = addr
		}
	}

	return addrs
}

// Topics returns the names of all topics of the namespace, sorted: without those that brokers make for themselves, and without
// retries, dead letters and checkpoints. It fails as Ask does.
func (t *Table) Topics(ctx context.Context) ([]string, error) {
	names, err := t.AllTopics(ctx)

	return slices.DeleteFunc(names, func(name string) bool {
		mark, _ := cutMark(name)

		return mark != "" || strings.HasPrefix(name, Checkpoints)
	}), err
}

// AllTopics is Topics with those of retries, dead letters and checkpoints.
func (t *Table) AllTopics(ctx context.Context) ([]string, error) {
	got, err := t.Ask(ctx, &remoting.Command{Code: allTopics})
	if err != nil {
		return nil, err
	}

	var list struct {
		Topics []string `json:"topicList"`
	}

	if err := decode(got.Body, &list); err != nil {
		return nil, fmt.Errorf("rocketmq: the list of topics: %w", err)
	}

	brokers, err := t.Brokers(ctx)
	if err != nil {
		return nil, err
	}

	space := t.options.Namespace
	names := list.Topics[:0]

	for _, name := range list.Topics {
		if _, rest := cutMark(name); space.Holds(rest) && !isSystem(name) && !isNamedAfter(brokers, name) {
			names = append(names, space.Unwrap(name))
		}
	}

	slices.Sort(names)

	return slices.Compact(names), nil
}

// isNamedAfter reports whether a topic is one of those that a broker makes with its own name or its cluster's.
func isNamedAfter(brokers []Broker, topic string) bool {
	name := strings.TrimSuffix(topic, "_REPLY_TOPIC")

	return slices.ContainsFunc(brokers, func(b Broker) bool { return name == b.Cluster || topic == b.Name })
}
