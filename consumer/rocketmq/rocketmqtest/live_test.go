package rocketmqtest_test

import (
	"encoding/binary"
	"errors"
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// Of a record: queue offset at 20, physical offset at 28, sysFlag at 36.
func sysFlags(body []byte) (flags []uint32) {
	for len(body) > 0 {
		flags = append(flags, binary.BigEndian.Uint32(body[36:]))
		body = body[binary.BigEndian.Uint32(body):]
	}

	return flags
}

func TestRealBrokersDoWhatTheWireNotesSay(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})

	t.Run("side by side", func(t *testing.T) {
		for name, test := range map[string]func(*testing.T, *world){
			"a pull is held as long as it asks for":       aPullIsHeld,
			"a reset reaches a held pull late":            aResetReachesAHeldPull,
			"levels of sendBack":                          theLadderOfLevels,
			"a topic of batches stores records of many":   aBatchTopic,
			"bodies of a Java producer":                   bodiesFromJava,
			"a commit does not wait for the queue to be":  aCommitBeyondTheEnd,
			"an empty queue does not begin at its number": anEmptyQueueHasNoOffset,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, newWorld(t, cluster, remoting.Options{}))
			})
		}
	})

	t.Run("a broker for reading only", func(t *testing.T) { aReadOnlyBroker(t, newWorld(t, cluster, remoting.Options{})) })
	t.Run("the name server is down", func(t *testing.T) { theNameServerIsDown(t, newWorld(t, cluster, remoting.Options{})) })
}

func aPullIsHeld(t *testing.T, w *world) {
	w.create(t, "hold")

	began := time.Now()
	held := w.must(t, remoting.PullMessage, pullOf("hold", "0", map[string]string{"sysFlag": "6", "suspendTimeoutMillis": "6000"}),
		nil, remoting.PullNotFound)
	took := time.Since(began)

	// It looks at held pulls every 5 s only.
	if held.Code != remoting.PullNotFound || took < 6*time.Second || took > 12*time.Second {
		t.Errorf("a pull that may be held for 6 s: code %d after %v", held.Code, took)
	}

	t.Logf("held for %v", took)
}

func aResetReachesAHeldPull(t *testing.T, w *world) {
	w.create(t, "resets")

	for range 5 {
		w.send(t, "resets", "x")
	}

	stored := map[string]string{"consumerGroup": "resetters", "topic": "resets", "queueId": "0"}
	pull := pullOf("resets", "5", map[string]string{"consumerGroup": "resetters", "sysFlag": "6", "suspendTimeoutMillis": "6000"})
	done := make(chan *remoting.Command, 1)

	w.must(t, remoting.PullMessage, pullOf("resets", "0", map[string]string{"consumerGroup": "resetters"}), nil)

	ctx, began := within(t), time.Now()

	go func() {
		answer, err := w.broker(ctx, remoting.PullMessage, pull, nil, remoting.PullNotFound, remoting.PullOffsetMoved)
		if err != nil {
			answer = &remoting.Command{Remark: err.Error()}
		}

		done <- answer
	}()

	<-time.After(500 * time.Millisecond) // for the pull to be held

	answer := w.must(t, remoting.ResetOffset, map[string]string{
		"topic": "resets", "group": "resetters", "timestamp": "-1", "isForce": "true", "queueId": "0", "offset": "2",
	}, nil)
	if !strings.Contains(string(answer.Body), `{"brokerName":`) {
		t.Errorf("the reset answers %s", answer.Body)
	}

	commit := maps.Clone(stored)
	commit["commitOffset"] = "5"

	if vain := w.must(t, remoting.UpdateConsumerOffset, commit, nil); !strings.Contains(vain.Remark, "reset") {
		t.Errorf("a commit between a reset and the pull that sees it: %+v", vain)
	}

	moved := <-done
	if moved.Code != remoting.PullOffsetMoved || moved.Remark != "OFFSET_RESET" || moved.Ext["nextBeginOffset"] != "2" {
		t.Errorf("the held pull ends with %+v", moved)
	}

	t.Logf("the held pull saw the reset after %v", time.Since(began))

	if got := w.must(t, remoting.QueryConsumerOffset, stored, nil); got.Ext["offset"] != "2" {
		t.Errorf("after the reset the offset is %v", got.Ext)
	}
}

// theLadderOfLevels looks at the levels that the broker chooses by itself: they are in the property DELAY.
func theLadderOfLevels(t *testing.T, w *world) {
	w.create(t, "ladder")
	w.send(t, "ladder", "poison")

	last := w.must(t, remoting.PullMessage, pullOf("ladder", "0", map[string]string{"consumerGroup": "climbers"}), nil)
	back := func(most int) {
		w.must(t, remoting.SendMessageBack, map[string]string{
			"offset": strconv.FormatUint(binary.BigEndian.Uint64(last.Body[28:]), 10), "group": "climbers", "delayLevel": "0",
			"originMsgId": "", "originTopic": "ladder", "unitMode": "false", "maxReconsumeTimes": strconv.Itoa(most),
		}, nil)
	}
	fetch := func(topic string, offset int) {
		deadline := time.Now().Add(patience)
		for {
			answer, err := w.broker(within(t), remoting.PullMessage, pullOf(topic, strconv.Itoa(offset), map[string]string{
				"consumerGroup": "climbers", "sysFlag": "6", "suspendTimeoutMillis": "5000",
			}), nil)
			if err == nil && answer.Code == remoting.Success {
				last = answer

				return
			}

			if time.Now().After(deadline) {
				t.Fatal(err)
			}
		}
	}

	const most = 6

	for times := range most {
		back(most)
		fetch("%RETRY%climbers", times)

		if want := "DELAY\x01" + strconv.Itoa(3+times) + "\x02"; !strings.Contains(string(last.Body), want) {
			t.Errorf("delivery %d has not %q: %q", times+2, want, last.Body)
		}
	}

	back(most)
	fetch("%DLQ%climbers", 0)

	if !strings.Contains(string(last.Body), "poison") {
		t.Errorf("the dead letter is %q", last.Body)
	}
}

func aBatchTopic(t *testing.T, w *world) {
	w.must(t, remoting.UpdateTopic, map[string]string{
		"topic": "batches", "defaultTopic": "TBW102", "readQueueNums": "1", "writeQueueNums": "1", "perm": "6",
		"topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false", "attributes": "+queue.type=BatchCQ",
	}, nil)

	var body []byte
	for _, text := range []string{"one", "two", "three"} {
		props := "UNIQ_KEY\x01K" + text + "\x02"
		body = binary.BigEndian.AppendUint32(body, uint32(22+len(text)+len(props)))
		body = append(body, make([]byte, 12)...)
		body = append(binary.BigEndian.AppendUint32(body, uint32(len(text))), text...)
		body = append(binary.BigEndian.AppendUint16(body, uint16(len(props))), props...)
	}

	stored := w.must(t, remoting.SendMessageBatch, map[string]string{
		"a": "producers", "b": "batches", "c": "TBW102", "d": "1", "e": "0", "f": "0", "g": "1700000000000", "h": "0",
		// Without an id of the batch as a whole its messages are stored one by one here too.
		"i": "UNIQ_KEY\x01BATCH\x02", "j": "0", "k": "false", "m": "true", "n": w.Brokers[0].Name,
	}, body)
	t.Logf("stored: %v", stored.Ext)

	deadline := time.Now().Add(patience)
	for {
		answer, err := w.broker(within(t), remoting.PullMessage, pullOf("batches", "0", nil), nil)
		if err == nil {
			flags := sysFlags(answer.Body)
			if len(flags) != 1 || flags[0]&0xC0 != 0xC0 || answer.Ext["nextBeginOffset"] != "3" {
				t.Errorf("a batch of 3 comes back with the flags %x, %v", flags, answer.Ext)
			}

			return
		}

		if time.Now().After(deadline) {
			t.Fatal(err)
		}

		<-time.After(20 * time.Millisecond)
	}
}

func bodiesFromJava(t *testing.T, w *world) {
	w.create(t, "java")
	w.Java(t, "testdata/Produce.java", "java")
	w.holds(t, "java", 7)

	got := w.must(t, remoting.PullMessage, pullOf("java", "0", nil), nil)
	flags := sysFlags(got.Body)

	// Plain, three of a batch, zlib, LZ4, ZSTD; compression is bit 0, its kind bits 8 to 10.
	want := []uint32{0, 0, 0, 0, 0x301, 0x101, 0x201}
	for i := range max(len(want), len(flags)) {
		if i >= len(flags) || i >= len(want) || flags[i] != want[i] {
			t.Errorf("the flags are %x, want %x", flags, want)

			break
		}
	}
}

func aCommitBeyondTheEnd(t *testing.T, w *world) {
	w.create(t, "beyond")
	w.must(t, remoting.Heartbeat, nil, heartbeatOf(t, "m", "beyonders", "beyond"))

	ext := map[string]string{"consumerGroup": "beyonders", "topic": "beyond", "queueId": "0", "commitOffset": "42"}
	w.must(t, remoting.UpdateConsumerOffset, ext, nil)

	if got := w.must(t, remoting.QueryConsumerOffset, ext, nil); got.Ext["offset"] != "42" {
		t.Errorf("a commit beyond the end reads as %v", got.Ext)
	}
}

func anEmptyQueueHasNoOffset(t *testing.T, w *world) {
	w.create(t, "empty")

	ext := map[string]string{"consumerGroup": "empties", "topic": "empty", "queueId": "0"}
	if got := w.must(t, remoting.QueryConsumerOffset, ext, nil, remoting.QueryNotFound); got.Code != remoting.QueryNotFound {
		t.Errorf("the offset of a new group in an empty queue is %+v", got)
	}
}

// aReadOnlyBroker refuses what is sent back; a message that is sent in spite of its route it takes.
func aReadOnlyBroker(t *testing.T, w *world) {
	w.create(t, "readonly")
	w.send(t, "readonly", "x")

	got := w.must(t, remoting.PullMessage, pullOf("readonly", "0", nil), nil)
	back := map[string]string{
		"offset": strconv.FormatUint(binary.BigEndian.Uint64(got.Body[28:]), 10), "group": "readers", "delayLevel": "1",
		"originMsgId": "", "originTopic": "readonly", "unitMode": "false", "maxReconsumeTimes": "16",
	}

	w.Brokers[0].Configure(t, map[string]string{"brokerPermission": "4"})
	w.refused(t, remoting.NoPermission, remoting.SendMessageBack, back)
	w.send(t, "readonly", "in spite of it")

	route, err := w.client.Call(within(t), w.NameServer, routeOf("readonly"))
	if err != nil || !strings.Contains(string(route.Body), `"perm":4`) {
		t.Errorf("the route of a read-only broker: %+v, %v", route, err)
	}

	w.Brokers[0].Configure(t, map[string]string{"brokerPermission": "6"})
	w.must(t, remoting.SendMessageBack, back, nil)
}

func theNameServerIsDown(t *testing.T, w *world) {
	w.create(t, "known")
	w.StopNameServer(t)

	if _, err := w.client.Call(within(t), w.NameServer, routeOf("known")); err == nil {
		t.Error("a name server that is down answers")
	}

	w.send(t, "known", "the broker goes on") // the broker does not need it
	w.StartNameServer(t)

	fresh := newWorld(t, w.Cluster, remoting.Options{})

	route, err := fresh.client.Call(within(t), w.NameServer, routeOf("known"))
	if err != nil || !strings.Contains(string(route.Body), w.Brokers[0].Addr) {
		t.Errorf("the route after the name server is back: %+v, %v", route, err)
	}

	if _, refused := errors.AsType[*remoting.ResponseError](err); refused {
		t.Errorf("the route after the name server is back: %v", err)
	}
}
