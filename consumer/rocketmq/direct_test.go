package rocketmq_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

// hand has the only member of the group take a record, and returns what it says.
func (w *world) hand(raw []byte) string {
	w.Helper()

	return w.relayed(remoting.ConsumeDirectly, raw)
}

// relayed has the broker ask the only member of the group something.
func (w *world) relayed(code int, body []byte) string {
	w.Helper()

	list, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
		Code: remoting.GetConsumerList, Ext: map[string]string{"consumerGroup": group},
	})
	if err != nil {
		w.Fatal(err)
	}

	var members struct {
		IDs []string `json:"consumerIdList"`
	}

	if err := json.Unmarshal(list.Body, &members); err != nil {
		w.Fatal(err)
	}

	answer, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
		Code: code, Body: body,
		Ext: map[string]string{"consumerGroup": group, "clientId": members.IDs[0], "msgId": "x", "brokerName": "b0"},
	})
	if err != nil {
		w.Fatal(err)
	}

	return string(answer.Body)
}

// stored returns the record at the beginning of a topic as it lies in the broker's log.
func (w *world) stored(topic string) []byte {
	w.Helper()

	answer, err := w.client.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
		Code: remoting.PullMessage, Ext: map[string]string{
			"bname": "b0", "topic": topic, "queueId": "0", "consumerGroup": "lookers", "queueOffset": "0", "maxMsgNums": "1",
			"sysFlag": "4", "commitOffset": "0", "suspendTimeoutMillis": "0", "subscription": "*", "expressionType": "TAG",
			"subVersion": "1",
		},
	})
	if err != nil {
		w.Fatal(err)
	}

	return answer.Body
}

// What an administrator hands to a member comes by the group's retry topic, with its id and all its attempts.
func TestWhatIsHandedToAMemberComesToItsGroup(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("a")

		r := w.join(consumer.Subscription{})
		original := r.take(r.owned(first()), 0).Messages[0]

		if err := r.DeadLetter(w.Context(), original, consumer.Cause{Error: "never", Stage: "c/s"}); err != nil {
			w.Fatal(err)
		}

		for at, raw := range [][]byte{w.stored(topic), w.stored("%DLQ%" + group)} {
			if said := w.hand(raw); !strings.Contains(said, `"consumeResult":"CR_SUCCESS"`) {
				w.Errorf("it says %s", said)
			}

			m := r.take(r.owned(retries()), pipeline.Offset(at)).Messages[0]
			if m.ID != original.ID || m.Topic != topic || string(m.Body) != "a" || m.Origin.Delivery != 1 ||
				m.Props[consumer.PropReplays] != [...]string{"", "1"}[at] || m.Props[consumer.PropDeadError] != "" {
				w.Errorf("what came is %+v", m)
			}
		}
	})
}

func TestWhatNoMemberCanTakeIsRefused(t *testing.T) {
	t.Parallel()

	for want, c := range map[string]struct {
		o    rocketmq.Options
		s    consumer.Subscription
		from string
		cut  int
	}{
		`of topic \"other\", and group \"G\" reads T`: {from: "other"},
		"in the record":                  {from: topic, cut: 1000},
		"damaged":                        {from: topic, cut: 30},
		"millrace dlq replay --to TOPIC": {from: topic, o: rocketmq.Options{Orderly: true}},
		"not for a broadcasting member":  {from: topic, s: consumer.Subscription{Broadcast: true, Instance: "i"}},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			inBubble(t, rocketmqfake.Options{}, c.o, func(w *world) {
				w.fake.CreateTopic("other", 1)
				w.publish("a")

				if err := w.Publish(w.Context(), "other", []*pipeline.Message{{Body: []byte("b")}}); err != nil {
					w.Fatal(err)
				}

				r := w.join(c.s)
				r.owned(first())

				raw := w.stored(c.from)
				if said := w.hand(raw[:max(len(raw)-c.cut, 0)]); !strings.Contains(said, `"CR_THROW_EXCEPTION"`) || !strings.Contains(said, want) {
					w.Errorf("it says %s", said)
				}
			})
		})
	}
}
