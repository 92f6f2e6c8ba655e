package record_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/record"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// TestWhatJavaSendsIsRead has RocketMQ's own producer send a body plain, with each compression, and in a batch, to a topic
// that keeps a batch as single records and to one that keeps it as one.
func TestWhatJavaSendsIsRead(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})
	client := remoting.NewClient(remoting.Options{})
	t.Cleanup(client.Close)

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	broker := cluster.Brokers[0]
	call := func(code int, ext map[string]string, accept ...int) *remoting.Command {
		ext["bname"] = broker.Name

		answer, err := client.Call(ctx, broker.Addr, &remoting.Command{Code: code, Ext: ext}, accept...)
		if err != nil {
			t.Fatal(err)
		}

		return answer
	}

	for topic, attributes := range map[string]string{"single": "", "together": "+queue.type=BatchCQ"} {
		call(remoting.UpdateTopic, map[string]string{
			"topic": topic, "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
			"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false", "attributes": attributes,
		})
		awaitRoute(ctx, t, client, cluster.NameServer, topic)
		cluster.Java(t, "../rocketmqtest/testdata/Produce.java", topic)

		pull := func(offset int64) *remoting.Command {
			return call(remoting.PullMessage, map[string]string{
				"consumerGroup": "readers", "topic": topic, "queueId": "0", "queueOffset": strconv.FormatInt(offset, 10),
				"maxMsgNums": "32", "sysFlag": "6", "commitOffset": "0", "suspendTimeoutMillis": "15000", "subscription": "*",
				"subVersion": "1", "expressionType": "TAG",
			}, remoting.PullNotFound, remoting.PullRetryImmediately)
		}

		var all []record.Record

		for len(all) < 7 { // a broker takes a moment until what is stored can be pulled; the hold waits for it
			all = append(all, decode(t, pull(int64(len(all))).Body, int64(len(all)))...)
		}

		checkJava(t, topic, broker.Addr, all)

		// A pull that begins inside of the batch brings what is left of it.
		if rest := decode(t, pull(2).Body, 2); len(rest) < 2 || rest[0].Offset != 2 || string(rest[0].Body) != "b1" {
			t.Errorf("%s: from 2 come %s", topic, list(rest))
		}
	}
}

func checkJava(t *testing.T, topic, addr string, all []record.Record) {
	t.Helper()

	want := []string{"NONE", "BATCH", "BATCH", "BATCH", "ZLIB", "LZ4", "ZSTD"}
	ids := map[string]bool{}

	for i := range all {
		r := &all[i]

		body := strings.Repeat("x", 10_000)
		if want[i] == "BATCH" {
			body = fmt.Sprint("b", i-1)
		}

		tag, _ := r.Props.Get(record.PropTags)
		ids[r.ID()] = true

		if r.Offset != int64(i) || string(r.Body) != body || tag != want[i] || r.Topic != topic || r.Times != 0 {
			t.Errorf("%s: at %d is %d %s with tag %s and %d bytes", topic, i, r.Offset, r.Topic, tag, len(r.Body))
		}

		// With the bits of inner batches and compression undone nothing is left.
		if r.SysFlag != 0 || r.StoreHost.String() != addr || time.Since(time.UnixMilli(r.Born)).Abs() > time.Hour {
			t.Errorf("%s: at %d are flags %x, stored at %s, born %d", topic, i, r.SysFlag, r.StoreHost, r.Born)
		}
	}

	if len(ids) != len(want) {
		t.Errorf("%s: the ids are %v", topic, slices.Sorted(maps.Keys(ids)))
	}
}

func awaitRoute(ctx context.Context, t *testing.T, client *remoting.Client, nameServer, topic string) {
	t.Helper()

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for {
		answer, err := client.Call(ctx, nameServer, &remoting.Command{
			Code: remoting.GetRouteInfo, Ext: map[string]string{"topic": topic, "acceptStandardJsonOnly": "true"},
		}, remoting.TopicNotExist)
		if err != nil {
			t.Fatal(err)
		}

		if answer.Code == remoting.Success {
			return
		}

		<-tick.C
	}
}
