package routes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/loosejson"
	"github.com/millrace/millrace/pipeline"
)

// The bits of a topic's permissions.
const (
	PermWrite = 2
	PermRead  = 4
)

// maxQueues is the most queues of a topic that we believe in; a guess far above what is used.
const maxQueues = 1 << 16

// Route is where a topic is. It must not be changed.
type Route struct {
	// Readable and Writable are the topic's queues, sorted.
	Readable, Writable []pipeline.Queue

	brokers map[string]map[int]string // addresses of each broker by their ids; 0 is the master's
}

// answer is a route as name servers write it.
type answer struct {
	Queues []struct {
		Broker string `json:"brokerName"`
		Read   int    `json:"readQueueNums"`
		Write  int    `json:"writeQueueNums"`
		Perm   int    `json:"perm"`
	} `json:"queueDatas"`
	Brokers []struct {
		Name  string            `json:"brokerName"`
		Addrs map[string]string `json:"brokerAddrs"`
	} `json:"brokerDatas"`
}

// parse reads a name server's answer. Queues of brokers without an address are left out.
func parse(topic string, body []byte) (*Route, error) {
	var a answer
	if err := decode(body, &a); err != nil {
		return nil, fmt.Errorf("rocketmq: the route of topic %q: %w", topic, err)
	}

	r := &Route{brokers: map[string]map[int]string{}}

	for _, b := range a.Brokers {
		if addrs := addresses(b.Addrs); len(addrs) > 0 {
			r.brokers[b.Name] = addrs
		}
	}

	read, write := map[string]int{}, map[string]int{} // by broker, so that one that is named twice counts once

	for _, q := range a.Queues {
		if r.brokers[q.Broker] == nil {
			continue // its broker is gone
		}

		if q.Perm&PermRead != 0 {
			read[q.Broker] = max(read[q.Broker], q.Read)
		}

		if q.Perm&PermWrite != 0 && r.Master(q.Broker) != "" {
			write[q.Broker] = max(write[q.Broker], q.Write)
		}
	}

	var err error
	if r.Readable, err = queues(topic, read); err != nil {
		return nil, err
	}

	r.Writable, err = queues(topic, write)

	return r, err
}

// decode reads JSON, also that of name servers before 4.9.4, whose objects have numbers for keys.
func decode(body []byte, into any) error {
	if !json.Valid(body) {
		strict, err := loosejson.Strict(body)
		if err != nil {
			return err //nolint:wrapcheck // who calls says of what
		}

		body = strict
	}

	return json.Unmarshal(body, into) //nolint:wrapcheck // as above
}

// queues returns the queues of a topic, from how many each broker has of them.
func queues(topic string, counts map[string]int) ([]pipeline.Queue, error) {
	var all []pipeline.Queue

	for broker, n := range counts {
		if n > maxQueues-len(all) {
			return nil, fmt.Errorf("rocketmq: the route of topic %q has more than %d queues", topic, maxQueues)
		}

		for id := range n {
			all = append(all, pipeline.Queue{Topic: topic, Broker: broker, ID: id})
		}
	}

	slices.SortFunc(all, consumer.CompareQueues)

	return all, nil
}

// Master returns the address of a broker's master, or "".
func (r *Route) Master(broker string) string { return r.brokers[broker][0] }

// Reader returns where to read from a broker: the id that is preferred, or else the lowest that there is; "" when the broker
// is not in the route.
func (r *Route) Reader(broker string, prefer int) string {
	addrs := r.brokers[broker]
	if addr, ok := addrs[prefer]; ok || len(addrs) == 0 {
		return addr
	}

	return addrs[slices.Min(slices.Collect(maps.Keys(addrs)))]
}

// Masters returns the addresses of the masters by the brokers' names.
func (r *Route) Masters() map[string]string {
	masters := map[string]string{}

	for name, addrs := range r.brokers {
		if addr := addrs[0]; addr != "" {
			masters[name] = addr
		}
	}

	return masters
}

// Addresses returns all addresses of the brokers, slaves too, sorted.
func (r *Route) Addresses() []string {
	var all []string

	for _, addrs := range r.brokers {
		all = slices.AppendSeq(all, maps.Values(addrs))
	}

	slices.Sort(all)

	return slices.Compact(all)
}

// QueuesAt returns how many queues of the topic a broker has for readers.
func (r *Route) QueuesAt(broker string) int {
	n := 0

	for _, q := range r.Readable {
		if q.Broker == broker {
			n++
		}
	}

	return n
}
