package rocketmq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// A job in a namespace reads a topic at two real brokers, of which one is killed while half of its messages are in flight. What was
// pulled from it is done, what is published meanwhile goes to the other one and is done too, and when it is back nothing is
// missing. Of what it could not be told any more some is done again.
func TestJobOutlivesOneOfTwoRealBrokers(t *testing.T) {
	t.Parallel()

	const n = 40

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{Brokers: 2})
	a := newAct(t, cluster, "two", 2, rocketmq.Options{Namespace: "ours"})

	p, err := producer.New(producer.Options{
		NameServers: []string{cluster.NameServer}, Namespace: "ours",
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})

	a.publishes(n)

	gate := make(chan struct{})
	r := a.starts(actors.Options{}, 0, func(_ context.Context, body string, number int) error {
		<-gate

		if strings.HasSuffix(body, "3") && number == 1 {
			return errors.New("not yet")
		}

		return nil
	})

	for pulled := 0; pulled < n; {
		select {
		case <-t.Context().Done():
			t.Fatalf("%d of %d messages are pulled", pulled, n)
		case <-time.After(20 * time.Millisecond):
		}

		s, err := r.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}

		pulled = 0
		for _, q := range s.Queues {
			pulled += q.InFlight
		}
	}

	cluster.Brokers[1].Kill(t)
	close(gate)

	for range n {
		body := "m-" + strconv.Itoa(a.published)
		if _, err := p.Send(t.Context(), a.name, producer.Message{ID: a.name + "-" + body, Body: []byte(body)}); err != nil {
			t.Fatal(err)
		}

		a.published++
	}

	a.until("all is written that one broker has or that was pulled", func() bool { return len(a.written) >= a.published-n/10 })
	t.Logf("%d of %d messages are written without the second broker", len(a.written), a.published)

	cluster.Brokers[1].Start(t)
	a.until("all is written", a.allWritten)
	a.ends(r)

	repeats := 0
	for _, times := range a.written {
		repeats += times - 1
	}

	t.Logf("%d of %d messages were done again", repeats, a.published)
	a.balances(2)
}
