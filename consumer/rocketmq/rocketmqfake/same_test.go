package rocketmqfake_test

import (
	"encoding/binary"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// levels are the delays of the brokers that rocketmqtest starts, as far as the questions go.
func levels() []time.Duration {
	const s = time.Second

	return []time.Duration{s, s, s, 2 * s, 2 * s, 2 * s, 3 * s}
}

// allTopics asks the name server for the names of all topics.
const allTopics = 206

type fieldMap = map[string]string

// questions are what both are asked. Each part has topics and groups of its own.
func questions() map[string]func(*asker) {
	return map[string]func(*asker){
		"topics": askTopics, "queue": askQueue, "send": askSend, "batch": askBatch, "pull": askPull, "tags": askTags, "sql": askSQL,
		"offsets": askOffsets, "reset": askReset, "members": askMembers, "send back": askSendBack,
		"resend": askResend, "locks": askLocks, "held": askHeld, "groups": askGroups,
	}
}

// newer are the parts that version 4 answers differently; docs/rocketmq-wire.md says how. The fake is a version 5.
func newer() []string { return []string{"send", "queue", "offsets", "reset", "resend"} }

func TestTheFakeAnswersLikeARealBroker(t *testing.T) { //nolint:tparallel // see below
	t.Parallel()

	//nolint:paralleltest // one after the other: each is two Java machines
	for _, version := range []string{rocketmqtest.DefaultVersion, rocketmqtest.NewestVersion, rocketmqtest.OldVersion} {
		t.Run(version, func(t *testing.T) { compare(t, version) })
	}
}

// compare puts the questions to a real broker and to a fake one.
func compare(t *testing.T, version string) {
	t.Helper()

	fake, err := rocketmqfake.New(rocketmqfake.Options{TCP: true, DelayLevels: levels()})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{Version: version})

	for name, part := range questions() {
		if version == rocketmqtest.OldVersion && slices.Contains(newer(), name) {
			continue
		}

		t.Run(name, func(t *testing.T) {
			t.Parallel()

			want := &asker{T: t, nameServer: cluster.NameServer, addr: cluster.Brokers[0].Addr, name: cluster.Brokers[0].Name}
			got := &asker{T: t, nameServer: fake.NameServer, addr: fake.Brokers[0].Addr, name: fake.Brokers[0].Name, dial: fake.Dial}

			for _, a := range []*asker{want, got} {
				a.open()
				part(a)
			}

			for i := range max(len(want.transcript), len(got.transcript)) {
				right, ours := lineOf(want, i), lineOf(got, i)
				if right != ours {
					t.Errorf("question %d\nreal %s\nfake %s", i, right, ours)
				} else {
					t.Log(right)
				}
			}
		})
	}
}

func lineOf(a *asker, i int) string {
	if i < len(a.transcript) {
		return a.transcript[i]
	}

	return "(nothing)"
}

func (a *asker) createTopic(topic string, queues, perm int) {
	a.ask("create "+topic, remoting.UpdateTopic, fieldMap{
		"topic": topic, "defaultTopic": "TBW102", "readQueueNums": strconv.Itoa(queues), "writeQueueNums": strconv.Itoa(queues),
		"perm": strconv.Itoa(perm), "topicFilterType": "SINGLE_TAG", "topicSysFlag": "0", "order": "false",
	}, nil)
}

// sendTo sends to queue 0.
func (a *asker) sendTo(topic, body, props string, more fieldMap) {
	ext := fieldMap{
		"a": "producers", "b": topic, "c": "TBW102", "d": "2", "e": "0", "f": "0", "g": "1700000000000", "h": "5",
		"i": "UNIQ_KEY\x01AC110001\x02" + props, "j": "0", "k": "false", "m": "false", "n": a.name,
	}
	maps.Copy(ext, more)
	a.ask("send "+topic, remoting.SendMessageV2, ext, []byte(body))
}

func pullOf(group, topic, offset string, more fieldMap) fieldMap {
	fields := fieldMap{
		"consumerGroup": group, "topic": topic, "queueId": "0", "queueOffset": offset, "maxMsgNums": "32", "sysFlag": "4",
		"commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "subVersion": "1", "expressionType": "TAG",
	}
	maps.Copy(fields, more)

	return fields
}

// stored waits until the messages of a topic's first queue can be pulled: the real broker indexes them a moment later.
func (a *asker) stored(topic, end string) {
	a.await("max of "+topic, remoting.GetMaxOffset, fieldMap{"topic": topic, "queueId": "0"}, func(r *remoting.Command) bool {
		return r.Ext["offset"] == end
	})
}

func askTopics(a *asker) {
	a.createTopic("topics", 3, 6)

	route := fieldMap{"topic": "topics", "acceptStandardJsonOnly": "true"}

	var r *remoting.Command

	a.eventually(func() bool {
		r = a.call(a.nameServer, remoting.GetRouteInfo, route, nil)

		return r.Code == remoting.Success
	})

	for _, want := range []string{`"readQueueNums":3`, `"perm":6`, `"brokerName":"` + a.name, `"0":"` + a.addr + `"`} {
		a.notef("route has %s: %v", want, strings.Contains(string(r.Body), want))
	}

	r = a.call(a.nameServer, remoting.GetRouteInfo, fieldMap{"topic": "no-such", "acceptStandardJsonOnly": "true"}, nil)
	a.notef("unknown route: %d", r.Code)

	for _, code := range []int{remoting.GetClusterInfo, allTopics} {
		r = a.call(a.nameServer, code, nil, nil)
		a.notef("request %d: %d with %v", code, r.Code, strings.Contains(string(r.Body), a.addr) || strings.Contains(string(r.Body), `"topics"`))
	}

	a.ask("no topic", remoting.UpdateTopic, fieldMap{"perm": "6"}, nil)
	a.createTopic("unreadable", 1, 2)
	a.ask("pull unreadable", remoting.PullMessage, pullOf("topics", "unreadable", "0", nil), nil)
	a.createTopic("unwritable", 1, 4)
	a.sendTo("unwritable", "x", "", nil)
	a.call(a.addr, remoting.DeleteTopic, fieldMap{"topic": "topics"}, nil) // done, but 5.3.3 fails behind it without its timer wheel
	a.ask("pull deleted", remoting.PullMessage, pullOf("topics", "topics", "0", nil), nil)
	a.ask("nonsense", 7777, nil, nil)
}

func askSend(a *asker) {
	a.createTopic("send", 1, 6)
	a.sendTo("send", "one", "TAGS\x01A\x02KEYS\x01k1 k2\x02a\x01b=c\x02", nil)
	a.sendTo("send", "", "", nil)
	a.sendTo("send", "three", "", fieldMap{"h": "0", "j": "2"})
	a.stored("send", "2")
	a.ask("pull", remoting.PullMessage, pullOf("send", "send", "0", nil), nil)
	a.sendTo("send", strings.Repeat("x", 4<<20+1), "", nil)
	a.sendTo("send", "x", "p\x01"+strings.Repeat("x", 1<<15)+"\x02", nil)
	a.sendTo("send", "beyond", "", fieldMap{"e": "7"})
	a.sendTo("send-made-up", "made", "", nil)
	a.stored("send-made-up", "1")
	a.sendTo("send", "delayed", "DELAY\x012\x02", nil)
	a.stored("send", "3")
	a.ask("pull delayed", remoting.PullMessage, pullOf("send", "send", "2", nil), nil)
}

func askBatch(a *asker) {
	a.createTopic("batch", 1, 6)

	var body []byte
	for _, text := range []string{"one", "two", "three"} {
		body = append(body, entryOf(text, "UNIQ_KEY\x01K"+text+"\x02TAGS\x01B\x02")...)
	}

	ext := fieldMap{
		"a": "producers", "b": "batch", "c": "TBW102", "d": "2", "e": "0", "f": "0", "g": "1700000000000", "h": "0",
		"i": "", "j": "0", "k": "false", "m": "true", "n": a.name,
	}
	a.ask("batch", remoting.SendMessageBatch, ext, body)
	a.notef("ids: %d", len(strings.Split(a.last.Ext["msgId"], ",")))
	a.stored("batch", "3")
	a.ask("pull", remoting.PullMessage, pullOf("batch", "batch", "0", nil), nil)
}

// entryOf is one message of a batch.
func entryOf(body, props string) []byte {
	be := binary.BigEndian
	entry := be.AppendUint32(nil, uint32(22+len(body)+len(props)))
	entry = append(entry, make([]byte, 12)...)
	entry = be.AppendUint32(entry, uint32(len(body)))
	entry = append(entry, body...)
	entry = be.AppendUint16(entry, uint16(len(props)))

	return append(entry, props...)
}

func askPull(a *asker) {
	a.createTopic("pull", 2, 6)

	for _, offset := range []string{"0", "1"} {
		a.ask("empty", remoting.PullMessage, pullOf("pull", "pull", offset, nil), nil)
	}

	for range 3 {
		a.sendTo("pull", "x", "", nil)
	}

	a.stored("pull", "3")

	for _, offset := range []string{"0", "2", "3", "4", "99"} {
		a.ask("at "+offset, remoting.PullMessage, pullOf("pull", "pull", offset, nil), nil)
	}

	a.ask("two", remoting.PullMessage, pullOf("pull", "pull", "0", fieldMap{"maxMsgNums": "2"}), nil)
	a.ask("no topic", remoting.PullMessage, pullOf("pull", "pull-none", "0", nil), nil)
	a.ask("no subscription", remoting.PullMessage, pullOf("pull", "pull", "0", fieldMap{"sysFlag": "0"}), nil)
	a.ask("missing field", remoting.PullMessage, fieldMap{"topic": "pull"}, nil)
}

func askQueue(a *asker) {
	a.createTopic("queue", 2, 6)
	a.ask("no queue", remoting.PullMessage, pullOf("queue", "queue", "0", fieldMap{"queueId": "2"}), nil)
}

func askTags(a *asker) {
	a.createTopic("tags", 1, 6)

	for _, tag := range []string{"TAGS\x01Aa\x02", "TAGS\x01BB\x02", "TAGS\x01C\x02", ""} {
		a.sendTo("tags", "x", tag, nil)
	}

	a.stored("tags", "4")

	// "Aa" and "BB" have one hash.
	for _, expression := range []string{"Aa", "C || BB", "none", "*", "", " C ||", "größer"} {
		a.ask("tags "+expression, remoting.PullMessage, pullOf("tags", "tags", "0", fieldMap{"subscription": expression}), nil)
	}
}

func askSQL(a *asker) {
	a.createTopic("sql", 1, 6)
	a.sendTo("sql", "1", "a\x015\x02c\x01x\x02", nil)
	a.sendTo("sql", "2", "a\x017\x02c\x01y\x02", nil)
	a.sendTo("sql", "3", "", nil)
	a.stored("sql", "3")

	for _, expression := range []string{
		"a > 5", "a >= 5 AND c = 'x'", "c <> 'x'", "a = 6", "a IS NICE", "", "b = 'x'",
	} {
		more := fieldMap{"subscription": expression, "expressionType": "SQL92"}
		a.ask("pull "+expression, remoting.PullMessage, pullOf("sql", "sql", "0", more), nil)
		a.ask("check "+expression, remoting.CheckClientConfig, nil, map[string]any{
			"clientId": "me", "group": "sql", "namespace": "", "subscriptionData": map[string]any{
				"classFilterMode": false, "topic": "sql", "subString": expression, "tagsSet": []string{}, "codeSet": []int{},
				"subVersion": 1, "expressionType": "SQL92",
			},
		})
	}
}

func askOffsets(a *asker) {
	a.createTopic("offsets", 1, 6)

	of := func(group, topic string, more fieldMap) fieldMap {
		ext := fieldMap{"consumerGroup": group, "topic": topic, "queueId": "0"}
		maps.Copy(ext, more)

		return ext
	}
	strict := fieldMap{"setZeroIfNotFound": "false"}

	a.ask("query empty", remoting.QueryConsumerOffset, of("offsets", "offsets", nil), nil)
	a.ask("commit of no group", remoting.UpdateConsumerOffset, of("offsets", "offsets", fieldMap{"commitOffset": "1"}), nil)
	a.sendTo("offsets", "x", "", nil)
	a.stored("offsets", "1")
	a.ask("query first", remoting.QueryConsumerOffset, of("offsets", "offsets", nil), nil)
	a.ask("query strict", remoting.QueryConsumerOffset, of("offsets", "offsets", strict), nil)
	a.ask("pull", remoting.PullMessage, pullOf("offsets", "offsets", "0", nil), nil)

	for _, offset := range []string{"7", "3", "-1"} {
		a.ask("commit "+offset, remoting.UpdateConsumerOffset, of("offsets", "offsets", fieldMap{"commitOffset": offset}), nil)
		a.ask("query after it", remoting.QueryConsumerOffset, of("offsets", "offsets", strict), nil)
	}

	a.ask("commit of no topic", remoting.UpdateConsumerOffset, of("offsets", "offsets-none", fieldMap{"commitOffset": "1"}), nil)
	a.ask("query of no topic", remoting.QueryConsumerOffset, of("offsets", "offsets-none", nil), nil)

	for _, at := range []string{"0", "9999999999999"} {
		for _, boundary := range []string{"LOWER", "UPPER"} {
			a.ask("search "+at+boundary, remoting.SearchOffset,
				fieldMap{"topic": "offsets", "queueId": "0", "timestamp": at, "boundaryType": boundary}, nil)
		}
	}

	a.ask("min", remoting.GetMinOffset, fieldMap{"topic": "offsets", "queueId": "0"}, nil)
	a.ask("missing", remoting.GetMinOffset, fieldMap{"topic": "offsets"}, nil)
}
