package rocketmqfake

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// allTopics asks for the names of all topics.
const allTopics = 206

type queueData struct {
	BrokerName     string `json:"brokerName"`
	ReadQueueNums  int    `json:"readQueueNums"`
	WriteQueueNums int    `json:"writeQueueNums"`
	Perm           int    `json:"perm"`
	TopicSysFlag   int    `json:"topicSysFlag"`
}

type brokerData struct {
	Cluster     string            `json:"cluster"`
	BrokerName  string            `json:"brokerName"`
	BrokerAddrs map[string]string `json:"brokerAddrs"`
}

func (b *Broker) data() brokerData {
	return brokerData{Cluster: clusterName, BrokerName: b.Name, BrokerAddrs: map[string]string{"0": b.server.addr}}
}

// answerRoutes is the name server.
func (c *Cluster) answerRoutes(_ *link, r *remoting.Command) *remoting.Command {
	switch r.Code {
	case remoting.GetRouteInfo:
		return c.route(r)
	case remoting.GetClusterInfo:
		table, names := map[string]brokerData{}, []string{}

		for _, b := range c.Brokers {
			if b.known() {
				table[b.Name] = b.data()
				names = append(names, b.Name)
			}
		}

		return asJSON(map[string]any{"brokerAddrTable": table, "clusterAddrTable": map[string][]string{clusterName: names}})
	case allTopics:
		names := map[string]bool{}

		for _, b := range c.Brokers {
			for name := range b.topics {
				names[name] = names[name] || b.known()
			}
		}

		maps.DeleteFunc(names, func(_ string, known bool) bool { return !known })

		return asJSON(map[string]any{"topicList": slices.Sorted(maps.Keys(names))})
	case remoting.DeleteTopicRoutes: // a route is what the brokers have
		return ok(nil, nil)
	default:
		return fail(remoting.NotSupported, " request type %d not supported", r.Code)
	}
}

func (c *Cluster) route(r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)
	name := f.text("topic")

	if bad := f.failed(); bad != nil {
		return bad
	}

	var (
		queues  []queueData
		brokers []brokerData
	)

	for _, b := range c.Brokers {
		if t := b.topics[name]; t != nil && b.known() {
			queues = append(queues, queueData{
				BrokerName: b.Name, ReadQueueNums: t.read, WriteQueueNums: t.write, Perm: t.perm & b.perm,
			})
			brokers = append(brokers, b.data())
		}
	}

	if queues == nil {
		return fail(remoting.TopicNotExist, "No topic route info in name server for the topic: %s", name)
	}

	return asJSON(map[string]any{"queueDatas": queues, "brokerDatas": brokers, "filterServerTable": map[string]any{}})
}

// known reports whether the name server hands the broker out.
func (b *Broker) known() bool { return b.server.up || b.lost }

func asJSON(v any) *remoting.Command {
	body, err := json.Marshal(v)
	if err != nil {
		return fail(remoting.SystemError, "%v", err)
	}

	return ok(nil, body)
}

// decodeBody reads a request's body; what it returns is the answer when that fails.
func decodeBody(r *remoting.Command, into any) *remoting.Command {
	if err := json.Unmarshal(r.Body, into); err != nil {
		return fail(remoting.SystemError, "request body: %v", err)
	}

	return nil
}
