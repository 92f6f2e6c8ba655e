package producer_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
)

func TestAnotherBrokerIsTriedWhenOneFails(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{Brokers: 2}, producer.Options{})
		w.CreateTopic("T", 2)
		w.send("T", producer.Message{})
		w.Brokers[0].Vanish() // the name server goes on to hand it out

		start := time.Now()

		for range 10 {
			if sent := w.send("T", producer.Message{}); sent.Queue.Broker != "b1" {
				t.Errorf("stored at %s", sent.Queue)
			}
		}

		// The first that meets the failure waits a little, the rest pass the broker over.
		if took := time.Since(start); took > 15*time.Millisecond {
			t.Errorf("it took %v", took)
		}

		if err := w.Brokers[0].Start(); err != nil {
			t.Fatal(err)
		}

		<-time.After(11 * time.Second)

		back := map[string]int{}
		for range 4 {
			back[w.send("T", producer.Message{}).Queue.Broker]++
		}

		if back["b0"] != 2 {
			t.Errorf("when it is back it gets %v", back)
		}
	})
}

func TestAHangingBrokerCostsOneAttempt(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		o := producer.Options{}
		o.Remoting.CallTimeout = time.Second
		w := setup(t, rocketmqfake.Options{}, o)
		w.CreateTopic("T", 1)
		w.send("T", producer.Message{})
		w.Fault(rocketmqfake.Faults{Late: 24 * time.Hour})

		start := time.Now()

		_, err := w.producer.Send(t.Context(), "T", producer.Message{})
		if !errors.Is(err, routes.ErrUnreachable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}

		for _, want := range []string{`topic "T"`, "3 attempts", "broker b0", "brokerIP1"} {
			if !strings.Contains(fmt.Sprint(err), want) {
				t.Errorf("%q is not in %v", want, err)
			}
		}

		// Three attempts, two looks at the name server in between, which hangs too.
		if took := time.Since(start).Truncate(time.Second); took != 5*time.Second {
			t.Errorf("it took %v", took)
		}

		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()

		start = time.Now()
		if _, err := w.producer.Send(ctx, "T", producer.Message{}); !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != 500*time.Millisecond {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestEveryMessageArrivesInSpiteOfFaults(t *testing.T) {
	t.Parallel()

	const n = 200

	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t, rocketmqfake.Options{Brokers: 2, Seed: seed}, producer.Options{Attempts: 30})
			w.CreateTopic("T", 2)
			w.Fault(rocketmqfake.Faults{Send: 0.2, Drop: 0.1, Broken: 0.05, GoAway: 0.1, Late: 100 * time.Millisecond})

			var batch []producer.Message

			for i := range n {
				m := producer.Message{Body: []byte(strconv.Itoa(i))}
				if i%2 == 0 {
					m.Key = strconv.Itoa(i % 10)
				}

				if i < n/2 {
					w.send("T", m)
				} else {
					batch = append(batch, m)
				}
			}

			if _, err := w.producer.SendBatch(t.Context(), "T", batch); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}

			w.Fault(rocketmqfake.Faults{})

			if got := w.reader.bodies("T"); len(got) != n {
				t.Errorf("seed %d: %d of %d are stored", seed, len(got), n)
			}
		})
	}
}

func TestTheLastFailureIsTold(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("T", 1)
		w.send("T", producer.Message{})

		// One of three attempts has to be the last.
		w.Fault(rocketmqfake.Faults{Send: 1})

		_, err := w.producer.Send(t.Context(), "T", producer.Message{})
		if err == nil || !strings.Contains(err.Error(), "3 attempts") || !strings.Contains(err.Error(), "system busy") {
			t.Errorf("the error is %v", err)
		}
	})
}
