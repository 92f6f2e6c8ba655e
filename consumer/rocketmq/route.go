package rocketmq

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// The bits of a topic's permissions.
const (
	permWrite = 2
	permRead  = 4
)

// maxQueues is the most queues of a topic at one broker that we believe in; a guess far above what is used.
const maxQueues = 1 << 16

// route is where a topic is. It is never changed.
type route struct {
	// readable and writable are the topic's queues, sorted.
	readable, writable []pipeline.Queue
	// brokers are the addresses of each broker by their ids; 0 is the master's.
	brokers map[string]map[int]string
}

// parseRoute reads a name server's answer.
func parseRoute(topic string, body []byte) (*route, error) {
	var answer struct {
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

	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("rocketmq: the route of topic %q: %w", topic, err)
	}

	r := &route{brokers: map[string]map[int]string{}}

	for _, b := range answer.Brokers {
		addrs := make(map[int]string, len(b.Addrs))

		for id, addr := range b.Addrs {
			if n, err := strconv.Atoi(id); err == nil {
				addrs[n] = addr
			}
		}

		r.brokers[b.Name] = addrs
	}

	for _, q := range answer.Queues {
		if len(r.brokers[q.Broker]) == 0 {
			continue // its broker is gone
		}

		if q.Perm&permRead != 0 {
			r.readable = append(r.readable, queuesOf(topic, q.Broker, q.Read)...)
		}

		if _, master := r.brokers[q.Broker][0]; master && q.Perm&permWrite != 0 {
			r.writable = append(r.writable, queuesOf(topic, q.Broker, q.Write)...)
		}
	}

	slices.SortFunc(r.readable, consumer.CompareQueues)
	slices.SortFunc(r.writable, consumer.CompareQueues)

	return r, nil
}

func queuesOf(topic, broker string, n int) []pipeline.Queue {
	queues := make([]pipeline.Queue, min(max(n, 0), maxQueues))
	for i := range queues {
		queues[i] = pipeline.Queue{Topic: topic, Broker: broker, ID: i}
	}

	return queues
}

// master returns the address of a broker's master, or "".
func (r *route) master(broker string) string { return r.brokers[broker][0] }

// address returns where to read from a broker: the id that is preferred, or else the lowest that there is; "" when the
// broker is not in the route.
func (r *route) address(broker string, prefer int) string {
	addrs := r.brokers[broker]
	if addr, ok := addrs[prefer]; ok {
		return addr
	}

	if len(addrs) == 0 {
		return ""
	}

	return addrs[slices.Min(slices.Collect(maps.Keys(addrs)))]
}

// addresses returns all addresses of the brokers, slaves too, sorted.
func (r *route) addresses() []string {
	var all []string

	for _, addrs := range r.brokers {
		all = slices.AppendSeq(all, maps.Values(addrs))
	}

	slices.Sort(all)

	return slices.Compact(all)
}

// queuesAt returns how many queues of the topic a broker has for readers.
func (r *route) queuesAt(broker string) int {
	n := 0

	for _, q := range r.readable {
		if q.Broker == broker {
			n++
		}
	}

	return n
}
