package rocketmq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

// Two jobs in one group want different tags: both say so, in an event, in the log, and when they are asked; and that it is
// mended when one has left.
func TestMembersThatSubscribeDifferentlyAreTold(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		start := func(o rocketmq.Options) (*actors.Running, chan string) {
			w.Helper()

			o.NameServers, o.Dial = []string{w.fake.NameServer}, w.fake.Dial

			r, err := actors.Start(jobOf(&book{seen: map[string]int{}}), openBus(w.T, o), actors.Options{})
			if err != nil {
				w.Fatal(err)
			}

			warnings := make(chan string, 10)

			r.OnEvent(func(e actors.Event) {
				if e, ok := e.(*actors.GroupWarned); ok {
					warnings <- e.Warning
				}
			})

			return r, warnings
		}

		first, ofFirst := start(rocketmq.Options{Filters: map[string]rocketmq.Filter{topic: {Tags: "paid || open"}}})
		twin, ofTwin := start(rocketmq.Options{Filters: map[string]rocketmq.Filter{topic: {Tags: "open||paid"}}})

		<-time.After(time.Hour)

		if len(ofFirst)+len(ofTwin) > 0 {
			w.Fatalf("of the same it is said %q", <-ofFirst)
		}

		twin.Drain(time.Minute)

		second, ofSecond := start(rocketmq.Options{})

		<-time.After(settlingDown)

		for r, told := range map[*actors.Running]chan string{first: ofFirst, second: ofSecond} {
			snapshot, err := r.Snapshot(w.Context())
			if err != nil {
				w.Fatal(err)
			}

			text := ""
			if len(told) == 1 {
				text = <-told
			}

			if !strings.Contains(text, `"open || paid"`) || !strings.Contains(text, `of group "G" subscribes differently (topic "T"`) ||
				snapshot.Warning != text {
				w.Errorf("told is %q, and when asked %q", text, snapshot.Warning)
			}
		}

		second.Drain(time.Minute)
		<-time.After(settlingDown)

		if len(ofFirst) != 1 || <-ofFirst != "" {
			w.Error("it is not said that it is mended")
		}

		first.Drain(time.Minute)
	})
}

// settlingDown is enough for members to find out about each other.
const settlingDown = 10 * time.Second

// A member that says nothing of itself, as some clients do, is no reason to say anything.
func TestMembersThatDoNotAnswerAreNoConcern(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r := w.join(consumer.Subscription{})
		r.owned(first())

		stranger := remoting.NewClient(remoting.Options{Dial: w.fake.Dial})
		defer stranger.Close()

		heartbeat := `{"clientID":"stranger","producerDataSet":[],"consumerDataSet":[{"groupName":"G",` +
			`"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",` +
			`"subscriptionDataSet":[{"topic":"T","subString":"x","tagsSet":["x"],"codeSet":[120],"subVersion":1}],"unitMode":false}]}`

		_, err := stranger.Call(w.Context(), w.fake.Brokers[0].Addr, &remoting.Command{
			Code: remoting.Heartbeat, Body: []byte(heartbeat),
		})
		if err != nil {
			w.Fatal(err)
		}

		r.keeps(time.Minute) // a warning would come as one, and ours is the first in the list
	})
}
