package rocketmq_test

import (
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
)

// resettable returns a member at the end of a queue of five, with a checkpoint at 4.
func resettable(w *world) (*reader, consumer.Lease) {
	w.Helper()
	w.publish("0", "1", "2", "3", "4")

	r := w.join(consumer.Subscription{})
	l := r.owned(first())
	r.take(l, 0)

	if err := r.Commit(w.Context(), l, consumer.Checkpoint{Next: 4}); err != nil {
		w.Fatal(err)
	}

	return r, l
}

// begunAgain checks that the queue came back under a new lease, to begin at 2.
func begunAgain(r *reader, before consumer.Lease) {
	r.Helper()

	r.next()

	after := r.owned(first())
	if after == before {
		r.Fatalf("the lease is still %v", after)
	}

	c, err := r.Stored(r.Context(), after.Queue)
	if err != nil || c.Next != 2 || len(c.Done) > 0 {
		r.Fatalf("stored is %v, %v", c, err)
	}

	if b := r.take(after, c.Next); len(b.Messages) != 3 {
		r.Errorf("from the reset on came %v", bodies(b))
	}

	if err := r.Commit(r.Context(), before, consumer.Checkpoint{Next: 5}); !errors.Is(err, consumer.ErrNotOwner) {
		r.Errorf("a commit of before: %v", err)
	}

	if err := r.Commit(r.Context(), after, consumer.Checkpoint{Next: 3}); err != nil || r.storedOffset() != "3" {
		r.Errorf("a commit of after: %v, stored is %s", err, r.storedOffset())
	}

	if r.logs.FilterMessageSnippet("an administrator has reset").Len() != 1 {
		r.Errorf("logged: %v", r.logs.All())
	}
}

func TestResetIsMetByAPull(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := resettable(w)
		w.reset("2")

		if _, err := r.Pull(w.Context(), l, 5, some()); !errors.Is(err, consumer.ErrNotOwner) {
			w.Fatalf("a pull after a reset: %v", err)
		}

		begunAgain(r, l)
	})
}

func TestResetIsMetByACommit(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := resettable(w)
		w.reset("2")

		if err := r.Commit(w.Context(), l, consumer.Checkpoint{Next: 5}); !errors.Is(err, consumer.ErrNotOwner) {
			w.Fatalf("a commit after a reset: %v", err)
		}

		begunAgain(r, l)
	})
}

// A checkpoint that happens to have the offset of the reset must not bring back what it knew to be finished.
func TestResetForgetsWhatWasFinishedAhead(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		r, l := resettable(w)

		for _, c := range []consumer.Checkpoint{{Next: 2, Done: []consumer.Run{{From: 3, To: 5}}}, {Next: 5}} {
			if err := r.Commit(w.Context(), l, c); err != nil {
				w.Fatal(err)
			}
		}

		w.reset("2")

		if _, err := r.Pull(w.Context(), l, 5, some()); !errors.Is(err, consumer.ErrNotOwner) {
			w.Fatalf("a pull after a reset: %v", err)
		}

		begunAgain(r, l)
	})
}

// A reset is no broker that has lost its offsets, so a job that waits for those to come back follows it all the same.
func TestResetIsFollowedByAJobThatWaitsForRewoundBrokers(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("1", "2", "3", "4", "5")

		b := &book{seen: map[string]int{}}

		r, err := actors.Start(jobOf(b), w.bus, actors.Options{Rewind: actors.RewindWait})
		if err != nil {
			w.Fatal(err)
		}

		rewound := make(chan *actors.OffsetRewound, 1)

		r.OnEvent(func(e actors.Event) {
			if e, ok := e.(*actors.OffsetRewound); ok {
				rewound <- e
			}
		})

		<-time.After(time.Minute)
		w.reset("2")
		<-time.After(time.Minute)

		if report := r.Drain(time.Minute); !report.Clean {
			w.Errorf("not clean: %+v", report)
		}

		if len(rewound) > 0 {
			w.Errorf("it is told as %+v", <-rewound)
		}

		if b.seen["2"] != 1 || b.seen["3"] != 2 || b.seen["5"] != 2 || w.storedOffset() != "5" {
			w.Errorf("written is %v, stored %s", b.seen, w.storedOffset())
		}
	})
}

// A reset that no pull has met yet refuses the last commit of a job that is stopped just then, which is nobody's fault.
func TestJobMayEndWhileAResetIsPending(t *testing.T) {
	t.Parallel()

	inBubble(t, rocketmqfake.Options{}, rocketmq.Options{}, func(w *world) {
		w.publish("1", "2", "3", "4", "5")

		r, err := actors.Start(jobOf(&book{seen: map[string]int{}}), w.bus, actors.Options{})
		if err != nil {
			w.Fatal(err)
		}

		<-time.After(64 * time.Second) // in the middle of a held pull
		w.reset("2")

		report := r.Drain(time.Minute)
		if !report.Clean || report.Err != nil || w.storedOffset() != "2" {
			w.Errorf("the end is %+v, stored %s", report, w.storedOffset())
		}
	})
}
