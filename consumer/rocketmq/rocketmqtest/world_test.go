package rocketmqtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

const patience = 30 * time.Second

// world is a cluster and a client of it.
type world struct {
	*rocketmqtest.Cluster

	client *remoting.Client
}

func newWorld(t *testing.T, c *rocketmqtest.Cluster, o remoting.Options) *world {
	t.Helper()

	w := &world{Cluster: c, client: remoting.NewClient(o)}
	t.Cleanup(w.client.Close)

	return w
}

// broker makes a call to the broker, whose name goes with it.
func (w *world) broker(ctx context.Context, code int, fields map[string]string, body []byte, accept ...int) (*remoting.Command, error) {
	ext := map[string]string{"bname": w.Brokers[0].Name}
	maps.Copy(ext, fields)

	return w.client.Call(ctx, w.Brokers[0].Addr, &remoting.Command{Code: code, Ext: ext, Body: body}, accept...)
}

// must is broker for calls that have to work.
func (w *world) must(t *testing.T, code int, fields map[string]string, body []byte, accept ...int) *remoting.Command {
	t.Helper()

	response, err := w.broker(within(t), code, fields, body, accept...)
	if err != nil {
		t.Fatal(err)
	}

	return response
}

// refused checks that the broker answers with a code.
func (w *world) refused(t *testing.T, want, code int, fields map[string]string) {
	t.Helper()

	response, err := w.broker(within(t), code, fields, nil)
	if refused, ok := errors.AsType[*remoting.ResponseError](err); !ok || refused.Code != want {
		t.Errorf("request %d with %v: %+v, %v; want code %d", code, fields, response, err, want)
	}
}

// create creates a topic of one queue and waits until the name server knows it.
func (w *world) create(t *testing.T, topic string) {
	t.Helper()

	w.must(t, remoting.UpdateTopic, map[string]string{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}, nil)

	ctx := within(t)
	tick := time.NewTicker(20 * time.Millisecond)

	defer tick.Stop()

	for {
		response, err := w.client.Call(ctx, w.NameServer, routeOf(topic))
		if err == nil {
			if !strings.Contains(string(response.Body), w.Brokers[0].Addr) {
				t.Fatalf("the route of %s is %s", topic, response.Body)
			}

			return
		}

		if refused, ok := errors.AsType[*remoting.ResponseError](err); !ok || refused.Code != remoting.TopicNotExist {
			t.Fatal(err)
		}

		<-tick.C
	}
}

// send stores a message in the topic's first queue and waits until it can be pulled: a broker answers before it has
// noted a message in its queue.
func (w *world) send(t *testing.T, topic, body string) *remoting.Command {
	t.Helper()

	sent := w.must(t, remoting.SendMessageV2, map[string]string{
		"a": "producers", "b": topic, "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "1700000000000", "h": "0",
		"i": "UNIQ_KEY\x01AC110001\x02WAIT\x01true\x02TAGS\x01TagA\x02", "j": "0", "k": "false", "m": "false", "n": w.Brokers[0].Name,
	}, []byte(body))

	at, err := strconv.ParseInt(sent.Ext["queueOffset"], 10, 64)
	if err != nil {
		t.Fatal(err)
	}

	w.holds(t, topic, at+1)

	return sent
}

// holds waits until n messages of the topic's first queue can be pulled.
func (w *world) holds(t *testing.T, topic string, n int64) {
	t.Helper()

	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) {
		end := w.must(t, remoting.GetMaxOffset, map[string]string{"topic": topic, "queueId": "0"}, nil).Ext["offset"]
		if got, err := strconv.ParseInt(end, 10, 64); err == nil && got >= n {
			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("%s ends at %s, want %d", topic, end, n)
		}
	}
}

func routeOf(topic string) *remoting.Command {
	return &remoting.Command{
		Code: remoting.GetRouteInfo, Ext: map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"},
	}
}

// pullOf is a pull of a topic's first queue that carries its subscription, with fields that replace or join it.
func pullOf(topic, offset string, more map[string]string) map[string]string {
	fields := map[string]string{
		"consumerGroup": "readers", "topic": topic, "queueId": "0", "queueOffset": offset, "maxMsgNums": "32", "sysFlag": "4",
		"commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "1", "expressionType": "TAG",
	}
	maps.Copy(fields, more)

	return fields
}

// heartbeatOf is the body of a heartbeat of one member that reads a topic.
func heartbeatOf(t *testing.T, clientID, group, topic string) []byte {
	t.Helper()

	subscription := map[string]any{
		"classFilterMode": false, "topic": topic, "subString": "*", "tagsSet": []string{}, "codeSet": []int{},
		"subVersion": time.Now().UnixMilli(), "expressionType": "TAG",
	}

	body, err := json.Marshal(map[string]any{
		"clientID": clientID, "producerDataSet": []any{}, "heartbeatFingerprint": 0, "withoutSub": false,
		"consumerDataSet": []any{map[string]any{
			"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": "CLUSTERING",
			"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "subscriptionDataSet": []any{subscription}, "unitMode": false,
		}},
	})
	if err != nil {
		t.Fatal(err)
	}

	return body
}

func within(t *testing.T) context.Context {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)

	return ctx
}
