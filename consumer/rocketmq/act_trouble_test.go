package rocketmq_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// aHungStageIsGivenUp has one call not return. The message goes back to the broker at its deadline, the others go on meanwhile,
// and what the call says in the end counts for nothing.
func aHungStageIsGivenUp(a *act) {
	const deadline = time.Second

	release := make(chan struct{})
	returned := func() bool { return len(happened[*actors.MessageReturned](a)) > 0 }

	a.publishes(10)

	began := time.Now()
	r := a.starts(actors.Options{}, deadline, func(_ context.Context, body string, number int) error {
		if body == "m-3" && number == 1 {
			<-release
		}

		return nil
	})

	a.until("the others are written", func() bool { return len(a.written) == a.published-1 })

	if returned() {
		a.Error("the others waited for the message that hangs")
	}

	a.until("the message has gone back", returned)
	a.Logf("%d others were done at once; the message went back after %v with a deadline of %v",
		a.published-1, time.Since(began).Round(time.Millisecond), deadline)

	hung := happened[*actors.LaneHung](a)
	if len(hung) != 1 || hung[0].Stage != "stage" || hung[0].MessageID != "act-hung-m-3" {
		a.Errorf("hung: %+v", hung)
	}

	a.until("all is written", a.allWritten)
	close(release)
	a.until("the lane has come back", func() bool { return len(happened[*actors.LaneReturned](a)) == 1 })
	a.ends(r)
	a.balances(1)

	if at := a.given[len(a.given)-1]; at.body != "m-3" || at.number != 2 {
		a.Errorf("the last delivery is %+v", at)
	}
}

// aResetIsFollowed resets the group to the beginning while the job works, as mqadmin's resetOffsetByTime asks for it.
func aResetIsFollowed(a *act) {
	const n, early = 60, 15

	a.publishes(n)

	r := a.starts(actors.Options{}, 0, func(ctx context.Context, _ string, _ int) error {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}

		return nil
	})

	a.until("some are committed", func() bool {
		done := happened[*actors.Committed](a)

		return len(done) > 0 && done[len(done)-1].Next >= early
	})

	if _, err := a.client.Call(a.Context(), a.cluster.Brokers[0].Addr, &remoting.Command{
		Code: remoting.ResetOffset,
		Ext:  map[string]string{"topic": a.name, "group": a.name, "timestamp": "1000", "isForce": "true"},
	}); err != nil {
		a.Fatal(err)
	}

	began := time.Now()

	a.until("the queue begins again", func() bool {
		begun := 0

		for _, e := range happened[*actors.QueueAssigned](a) {
			if e.Queue.Topic == a.name && e.From == 0 && e.Done == 0 {
				begun++
			}
		}

		return begun == 2
	})

	took := time.Since(began)
	a.Logf("followed after %v", took.Round(time.Millisecond))

	if rewound := happened[*actors.OffsetRewound](a); len(rewound) > 0 {
		a.Errorf("it is told as %+v", rewound[0])
	}

	a.until("all is written, and what was committed once more", func() bool {
		twice := 0

		for i := range early {
			if a.written["m-"+strconv.Itoa(i)] == 2 {
				twice++
			}
		}

		return a.allWritten() && twice == early
	})
	a.Logf("all done again after %v", time.Since(began).Round(time.Millisecond))
	a.ends(r)
	a.balances(2)

	if said := a.logs.FilterMessageSnippet("an administrator has reset").Len(); said != 1 {
		a.Errorf("the log says %d times that there was a reset: %v", said, a.logs.All())
	}

	if said := a.logs.FilterMessageSnippet("not confirmed").Len(); said != 0 {
		a.Errorf("the log says: %v", a.logs.All())
	}
}

// aRefusedReturnIsKept has the broker refuse what is sent back, for a while. A message whose queue is not locked is written to the
// retry topic instead, which such a broker allows; one whose queue is locked is kept, and goes back when it may.
func aRefusedReturnIsKept(shared, orderly *act) {
	var running []*actors.Running

	gate := make(chan struct{})

	for _, a := range []*act{shared, orderly} {
		a.publishes(5)

		r := a.starts(actors.Options{}, 0, func(_ context.Context, body string, number int) error {
			<-gate

			if body == "m-2" && number == 1 {
				return errors.New("not yet")
			}

			return nil
		})

		a.until("it is delivered", func() bool { return len(a.given) > 0 })
		running = append(running, r)
	}

	broker := shared.cluster.Brokers[0]
	broker.Configure(shared.T, map[string]string{"brokerPermission": "4"})
	close(gate)

	orderly.until("it is refused twice", func() bool { return len(happened[*actors.ReturnRefused](orderly)) >= 2 })
	shared.until("all is written", shared.allWritten)
	orderly.namesTheRefusal(running[1])

	if shared.logs.FilterMessageSnippet("does not take a message back").Len() != 1 {
		shared.Errorf("the log says: %v", shared.logs.All())
	}

	if tries := happened[*actors.ReturnRefused](shared); len(tries) != 0 {
		shared.Errorf("refused: %+v", tries)
	}

	began := time.Now()

	broker.Configure(shared.T, map[string]string{"brokerPermission": "6"})
	orderly.until("all is written", orderly.allWritten)
	orderly.Logf("%d refusals; written %v after the broker was healed", len(happened[*actors.ReturnRefused](orderly)),
		time.Since(began).Round(time.Millisecond))

	for i, a := range []*act{shared, orderly} {
		a.ends(running[i])
		a.balances(1)
	}
}

// namesTheRefusal checks that the job knows what keeps its commit watermark.
func (a *act) namesTheRefusal(r *actors.Running) {
	a.Helper()

	snapshot, err := r.Snapshot(a.Context())
	if err != nil {
		a.Fatal(err)
	}

	for _, q := range snapshot.Queues {
		if q.Queue.Topic != a.name {
			continue
		}

		if b := q.Blocking; q.Committed != 2 || b == nil || b.MessageID != a.name+"-m-2" || b.Doing != "goes back to the broker" ||
			!strings.Contains(b.LastError, "16") || b.Next == "" {
			a.Errorf("the queue is %+v, and what blocks it %+v", q, b)
		} else {
			a.Logf("the snapshot says: %s, %s; %s", b.Doing, b.LastError, b.Next)
		}
	}
}
