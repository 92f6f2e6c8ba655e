package rocketmqfake_test

import (
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

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
	a.notef("%s", a.last.Remark)
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
		a.notef("heartbeat of %s: %d", id, r.Code)
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
	a.notef("both are there: %v", strings.Contains(string(r.Body), `"m1"`) && strings.Contains(string(r.Body), `"m2"`))
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
	a.notef("unregister: %d", r.Code)
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
		a.notef("%s: %d, granted %v", what, r.Code, strings.Contains(string(r.Body), `"queueId":0`))
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

		<-time.After(300 * time.Millisecond) // for the pull to be held; if it is not, it is served just the same

		if c.expression != "*" {
			a.sendTo("held", "of another tag", "TAGS\x01A\x02", nil)
		}

		a.sendTo("held", "wake", c.props, nil)
		a.answered("held "+c.name, remoting.PullMessage, <-done)
	}
}
