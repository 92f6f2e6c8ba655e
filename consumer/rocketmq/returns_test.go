package rocketmq_test

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

func TestRefusedSendBackGoesToTheRetryTopicOrFails(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("a")

		r := w.join(consumer.Subscription{})
		original := r.take(r.owned(first()), 0).Messages[0]

		w.fake.Fault(rocketmqfake.Faults{SendBack: 1, Send: 1})

		if err := r.SendBack(w.Context(), original, 0); err == nil {
			w.Fatal("nobody took the message, and SendBack says nil")
		}

		w.fake.Fault(rocketmqfake.Faults{SendBack: 1})

		m := original
		retry := r.owned(retries())

		for delivery := 2; delivery < 5; delivery++ {
			if err := r.SendBack(w.Context(), m, 0); err != nil {
				w.Fatal(err)
			}

			m = r.take(retry, pipeline.Offset(delivery-2)).Messages[0]
			if m.Topic != topic || m.ID != original.ID || string(m.Body) != "a" || m.Origin.Delivery != delivery ||
				m.Props[consumer.PropOriginID] != original.ID || m.Props[consumer.PropOriginTopic] != topic {
				w.Fatalf("delivery %d is %+v", delivery, m)
			}
		}
	})
}

func TestDelaysAreTheBrokersLevels(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("a")

		r := w.join(consumer.Subscription{})
		m := r.take(r.owned(first()), 0).Messages[0]
		retry := r.owned(retries())
		seen := pipeline.Offset(0)

		for wanted, want := range map[time.Duration]time.Duration{
			0: shortLevels()[0], time.Millisecond: shortLevels()[0], 300 * time.Millisecond: time.Second, time.Hour: 2 * time.Second,
		} {
			began := time.Now()

			if err := r.SendBack(w.Context(), m, wanted); err != nil {
				w.Fatal(err)
			}

			r.take(retry, seen)
			seen++

			if took := time.Since(began); took != want {
				w.Errorf("a delay of %v took %v, want %v", wanted, took, want)
			}
		}
	})
}

func TestDeadLetterOfARedeliveryKeepsItsOrigin(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("a")

		r := w.join(consumer.Subscription{})
		original := r.take(r.owned(first()), 0).Messages[0]

		if err := r.SendBack(w.Context(), original, 0); err != nil {
			w.Fatal(err)
		}

		again := r.take(r.owned(retries()), 0).Messages[0]
		cause := consumer.Cause{Stage: "s", Error: "bad \x01 and \x02", Stack: strings.Repeat("deep ", 20_000), Deliveries: 2}

		if err := r.DeadLetter(w.Context(), again, cause); err != nil {
			w.Fatal(err)
		}

		m, err := w.Join(w.Context(), consumer.Subscription{Group: "mourners", Topics: []string{"%DLQ%G"}})
		if err != nil {
			w.Fatal(err)
		}

		mourner := &reader{world: w, Member: m}

		dead := mourner.take(mourner.owned(pipeline.Queue{Topic: "%DLQ%G", Broker: "b0"}), 0).Messages[0]
		if dead.ID != original.ID || dead.Props[consumer.PropOriginTopic] != topic || dead.Props[consumer.PropOriginID] != original.ID ||
			dead.Props[consumer.PropOriginQueue] != "%RETRY%G@b0/0" || dead.Origin.Delivery != 1 || dead.Topic != "%DLQ%G" {
			w.Errorf("the dead letter is %+v", dead)
		}

		if got := dead.Props[consumer.PropDeadError]; got != "bad   and  " {
			w.Errorf("the error is %q", got)
		}

		if got := dead.Props[consumer.PropDeadStack]; len(got) != 8<<10 {
			w.Errorf("the stack has %d bytes", len(got))
		}
	})
}

func TestDeadLetterThatIsRefusedIsParkedByTheBroker(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("a")

		r := w.join(consumer.Subscription{})
		m := r.take(r.owned(first()), 0).Messages[0]
		w.fake.Fault(rocketmqfake.Faults{Send: 1, SendBack: 1})

		if err := r.DeadLetter(w.Context(), m, consumer.Cause{}); err == nil {
			w.Fatal("nobody took the dead letter, and DeadLetter says nil")
		}

		w.fake.Fault(rocketmqfake.Faults{Send: 1})

		if err := r.DeadLetter(w.Context(), m, consumer.Cause{}); err != nil {
			w.Fatal(err)
		}

		if end := w.ask(remoting.GetMaxOffset, map[string]string{"topic": "%DLQ%G"})["offset"]; end != "1" {
			w.Errorf("there are %s dead letters", end)
		}
	})
}
