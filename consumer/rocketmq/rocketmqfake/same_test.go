package rocketmqfake_test

import (
	"encoding/binary"
	"maps"
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

type fieldMap = map[string]string

// questions are what both are asked. Each part has topics and groups of its own.
func questions() map[string]func(*asker) {
	return map[string]func(*asker){
		"topics": askTopics, "send": askSend, "batch": askBatch, "pull": askPull, "tags": askTags, "sql": askSQL,
		"offsets": askOffsets, "reset": askReset, "members": askMembers, "send back": askSendBack,
		"resend": askResend, "locks": askLocks, "held": askHeld, "groups": askGroups,
	}
}

func TestTheFakeAnswersLikeARealBroker(t *testing.T) {
	t.Parallel()

	fake, err := rocketmqfake.New(rocketmqfake.Options{TCP: true, DelayLevels: levels()})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(fake.Close)

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{})

	for name, part := range questions() {
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

	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if r := a.call(a.nameServer, remoting.GetRouteInfo, fieldMap{"topic": "topics", "acceptStandardJsonOnly": "true"}, nil); r.Code == 0 {
			for _, want := range []string{`"readQueueNums":3`, `"perm":6`, `"brokerName":"` + a.name, `"0":"` + a.addr + `"`} {
				a.note("route has %s: %v", want, strings.Contains(string(r.Body), want))
			}

			break
		}
	}

	r := a.call(a.nameServer, remoting.GetRouteInfo, fieldMap{"topic": "no-such", "acceptStandardJsonOnly": "true"}, nil)
	a.note("unknown route: %d", r.Code)
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
	a.note("ids: %d", len(strings.Split(a.last.Ext["msgId"], ",")))
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
	a.ask("no queue", remoting.PullMessage, pullOf("pull", "pull", "0", fieldMap{"queueId": "2"}), nil)
	a.ask("no topic", remoting.PullMessage, pullOf("pull", "pull-none", "0", nil), nil)
	a.ask("no subscription", remoting.PullMessage, pullOf("pull", "pull", "0", fieldMap{"sysFlag": "0"}), nil)
	a.ask("missing field", remoting.PullMessage, fieldMap{"topic": "pull"}, nil)
}

func askTags(a *asker) {
	a.createTopic("tags", 1, 6)

	for _, tag := range []string{"TAGS\x01Aa\x02", "TAGS\x01BB\x02", "TAGS\x01C\x02", ""} {
		a.sendTo("tags", "x", tag, nil)
	}

	a.stored("tags", "4")

	// "Aa" and "BB" have one hash.
	for _, expression := range []string{"Aa", "C || BB", "none", "*", "", " C ||", "中文"} {
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

func askReset(a *asker) {
	a.createTopic("reset", 1, 6)

	for range 5 {
		a.sendTo("reset", "x", "", nil)
	}

	a.stored("reset", "5")

	key := fieldMap{"consumerGroup": "reset", "topic": "reset", "queueId": "0", "setZeroIfNotFound": "false"}
	commit := fieldMap{"commitOffset": "4"}
	maps.Copy(commit, key)

	a.ask("pull", remoting.PullMessage, pullOf("reset", "reset", "4", nil), nil)
	a.ask("commit", remoting.UpdateConsumerOffset, commit, nil)
	a.ask("reset", remoting.ResetOffset, fieldMap{
		"topic": "reset", "group": "reset", "timestamp": "-1", "isForce": "true", "queueId": "0", "offset": "2",
	}, nil)
	a.ask("query", remoting.QueryConsumerOffset, key, nil)
	a.ask("commit in vain", remoting.UpdateConsumerOffset, commit, nil)
	a.note("%s", a.last.Remark)
	a.ask("query", remoting.QueryConsumerOffset, key, nil)
	a.ask("pull", remoting.PullMessage, pullOf("reset", "reset", "4", nil), nil)
	a.ask("pull again", remoting.PullMessage, pullOf("reset", "reset", "4", nil), nil)
	a.ask("commit again", remoting.UpdateConsumerOffset, commit, nil)
	a.ask("query", remoting.QueryConsumerOffset, key, nil)
	a.ask("reset all to a time", remoting.ResetOffset, fieldMap{
		"topic": "reset", "group": "reset", "timestamp": "1000", "isForce": "true",
	}, nil)
	a.ask("query", remoting.QueryConsumerOffset, key, nil)
	a.ask("reset no topic", remoting.ResetOffset, fieldMap{"topic": "reset-none", "group": "reset", "timestamp": "0", "isForce": "true"}, nil)
	a.ask("reset no group", remoting.ResetOffset, fieldMap{"topic": "reset", "group": "reset-none", "timestamp": "0", "isForce": "true"}, nil)
}

func askGroups(a *asker) {
	a.createTopic("groups", 1, 6)
	a.ask("disable", remoting.UpdateGroup, nil, map[string]any{"groupName": "groups", "consumeEnable": false, "retryQueueNums": 1})
	a.ask("pull", remoting.PullMessage, pullOf("groups", "groups", "0", nil), nil)
	a.ask("enable", remoting.UpdateGroup, nil, map[string]any{"groupName": "groups", "consumeEnable": true, "retryQueueNums": 1})
	a.ask("pull", remoting.PullMessage, pullOf("groups", "groups", "0", nil), nil)
	a.ask("commit", remoting.UpdateConsumerOffset,
		fieldMap{"consumerGroup": "groups", "topic": "groups", "queueId": "0", "commitOffset": "0"}, nil)
}

// beat is the body of a heartbeat.
func beat(id, group, topic, expression, model string, version int64) map[string]any {
	return map[string]any{
		"clientID": id, "producerDataSet": []any{}, "heartbeatFingerprint": 0, "withoutSub": false,
		"consumerDataSet": []any{map[string]any{
			"groupName": group, "consumeType": "CONSUME_PASSIVELY", "messageModel": model,
			"consumeFromWhere": "CONSUME_FROM_FIRST_OFFSET", "unitMode": false,
			"subscriptionDataSet": []any{map[string]any{
				"classFilterMode": false, "topic": topic, "subString": expression, "tagsSet": []string{}, "codeSet": []int{},
				"subVersion": version, "expressionType": "TAG",
			}},
		}},
	}
}

func askMembers(a *asker) {
	list := func(what string) { a.ask(what, remoting.GetConsumerList, fieldMap{"consumerGroup": "members"}, nil) }
	join := func(who *asker, id, topic string, version int64) {
		r := who.call(a.addr, remoting.Heartbeat, nil, beat(id, "members", topic, "*", "CLUSTERING", version))
		a.note("heartbeat of %s: %d", id, r.Code)
	}

	second := a.other()

	a.createTopic("members", 1, 6)
	list("nobody")
	join(a, "m1", "members", 1)
	a.notified("own join")
	list("one")
	join(second, "m2", "members", 1)
	a.notified("second joins")

	r := a.call(a.addr, remoting.GetConsumerList, fieldMap{"consumerGroup": "members"}, nil)
	a.note("both are there: %v", strings.Contains(string(r.Body), `"m1"`) && strings.Contains(string(r.Body), `"m2"`))
	a.ask("heartbeat's subscription", remoting.PullMessage, pullOf("members", "members", "0", fieldMap{"sysFlag": "0"}), nil)
	a.ask("later one", remoting.PullMessage, pullOf("members", "members", "0", fieldMap{"sysFlag": "0", "subVersion": "2"}), nil)
	a.ask("not subscribed", remoting.PullMessage, pullOf("members", "TBW102", "0", fieldMap{"sysFlag": "0"}), nil)
	a.ask("running info", remoting.GetRunningInfo, fieldMap{"consumerGroup": "members", "clientId": "m1"}, nil)
	a.ask("info of nobody", remoting.GetRunningInfo, fieldMap{"consumerGroup": "members", "clientId": "m9"}, nil)
	a.ask("retry topic", remoting.GetMaxOffset, fieldMap{"topic": "%RETRY%members", "queueId": "0"}, nil)

	for len(a.pushed) > 0 {
		<-a.pushed
	}

	r = second.call(a.addr, remoting.UnregisterClient, fieldMap{"clientID": "m2", "consumerGroup": "members"}, nil)
	a.note("unregister: %d", r.Code)
	a.notified("second leaves")
	list("one again")
	join(second, "m2", "members", 1)
	a.notified("second is back")
	second.client.Close()
	a.notified("second hangs up")
	list("one at last")
}

func askSendBack(a *asker) {
	a.createTopic("back", 1, 6)
	a.sendTo("back", "poison", "TAGS\x01A\x02p\x01q\x02", nil)
	a.stored("back", "1")
	a.ask("pull", remoting.PullMessage, pullOf("back", "back", "0", nil), nil)

	back := func(level, most string) {
		a.ask("back at level "+level, remoting.SendMessageBack, fieldMap{
			"offset": a.physical(), "group": "back", "delayLevel": level, "originMsgId": "", "originTopic": "back",
			"unitMode": "false", "maxReconsumeTimes": most,
		}, nil)
	}
	fetch := func(topic, offset string) {
		n, _ := strconv.Atoi(offset)
		a.stored(topic, strconv.Itoa(n+1))
		a.ask("pull", remoting.PullMessage, pullOf("back", topic, offset, nil), nil)
	}

	for i, level := range []string{"0", "1", "0"} {
		back(level, "3")
		fetch("%RETRY%back", strconv.Itoa(i))
	}

	back("0", "3")
	fetch("%DLQ%back", "0")
	a.ask("pull", remoting.PullMessage, pullOf("back", "back", "0", nil), nil)
	back("-1", "3")
	fetch("%DLQ%back", "1")
	a.ask("back from nowhere", remoting.SendMessageBack, fieldMap{
		"offset": "99999999", "group": "back", "delayLevel": "0", "originMsgId": "", "originTopic": "back", "unitMode": "false",
	}, nil)
	a.ask("back of no group", remoting.SendMessageBack, fieldMap{
		"offset": "99999999", "group": "back-none", "delayLevel": "0", "originMsgId": "", "originTopic": "back", "unitMode": "false",
	}, nil)
}

// askResend sends to the retry topic, as clients do when sending back failed.
func askResend(a *asker) {
	retry := "%RETRY%resend"
	props := "RETRY_TOPIC\x01resend\x02"

	a.ask("make the group", remoting.UpdateGroup, nil, map[string]any{"groupName": "resend", "consumeEnable": true, "retryQueueNums": 1})
	a.sendTo(retry, "1", props, fieldMap{"j": "3", "l": "3"})
	a.stored(retry, "1")
	a.ask("pull", remoting.PullMessage, pullOf("resend", retry, "0", nil), nil)
	a.sendTo(retry, "2", props+"DELAY\x011\x02", fieldMap{"j": "4", "l": "3"})
	a.stored("%DLQ%resend", "1")
	a.ask("pull", remoting.PullMessage, pullOf("resend", "%DLQ%resend", "0", nil), nil)
	a.ask("lock", remoting.LockQueues, nil, map[string]any{
		"consumerGroup": "resend", "clientId": "c1",
		"mqSet": []any{map[string]any{"topic": "resend", "brokerName": a.name, "queueId": 0}},
	})
	a.sendTo(retry, "3", props+"DELAY\x011\x02", fieldMap{"j": "1", "l": "3"})
	a.stored("%DLQ%resend", "2")
	a.ask("pull", remoting.PullMessage, pullOf("resend", "%DLQ%resend", "1", nil), nil)
}

func askLocks(a *asker) {
	of := func(client string) map[string]any {
		return map[string]any{
			"consumerGroup": "locks", "clientId": client, "onlyThisBroker": false,
			"mqSet": []any{map[string]any{"topic": "locks", "brokerName": a.name, "queueId": 0}},
		}
	}
	granted := func(what, client string) {
		r := a.call(a.addr, remoting.LockQueues, nil, of(client))
		a.note("%s: %d, granted %v", what, r.Code, strings.Contains(string(r.Body), `"queueId":0`))
	}

	granted("first", "c1")
	granted("again", "c1")
	granted("second", "c2")
	a.ask("unlock by the wrong one", remoting.UnlockQueues, nil, of("c2"))
	granted("second", "c2")
	a.ask("unlock", remoting.UnlockQueues, nil, of("c1"))
	granted("second", "c2")
}

func askHeld(a *asker) {
	a.createTopic("held", 1, 6)

	for _, c := range []struct{ name, expression, props string }{
		{"any", "*", ""}, {"tag", "B", "TAGS\x01B\x02"},
	} {
		at := a.call(a.addr, remoting.GetMaxOffset, fieldMap{"topic": "held", "queueId": "0"}, nil).Ext["offset"]
		done := make(chan *remoting.Command, 1)

		go func() {
			done <- a.call(a.addr, remoting.PullMessage, pullOf("held", "held", at, fieldMap{
				"sysFlag": "6", "suspendTimeoutMillis": "15000", "subscription": c.expression,
			}), nil)
		}()

		time.Sleep(300 * time.Millisecond) // for the pull to be held; if it is not, it is served just the same

		if c.expression != "*" {
			a.sendTo("held", "of another tag", "TAGS\x01A\x02", nil)
		}

		a.sendTo("held", "wake", c.props, nil)
		a.answered("held "+c.name, remoting.PullMessage, <-done)
	}
}
