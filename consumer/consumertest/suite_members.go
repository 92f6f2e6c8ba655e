package consumertest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func sharing() []guarantee {
	return []guarantee{
		{"members share the queues by the averaging rule", nil, sharedByAveraging},
		{"a member owns its group's retry queues", nil, ownsRetryQueues},
		{"a member that leaves hands its queues over", nil, leavingHandsOver},
		{"a queue goes to its next owner when it is released", holdsBack, releasedBeforeNext},
		{"a group gets every message, whatever other groups do", nil, groupsAreApart},
		{"a member that has left is told so", nil, leftIsLeft},
		{"waiting for an assignment ends with its context", nil, assignedEndsWithContext},
		{"broadcasting members get every message each", nil, broadcastToEach},
	}
}

func holdsBack(f Features) bool { return f.HoldsBackQueues }

func sharedByAveraging(w *world) {
	const queues, most = 5, 3

	w.queues(queues)

	var (
		members []*participant
		ids     []string
		all     []pipeline.Queue
	)

	for i := range most {
		ids = append(ids, "member-"+strconv.Itoa(i))
		members = append(members, w.join(ids[i]))

		if i == 0 {
			all = queuesOf(members[0].awaitQueues(queues))
		}

		for j, m := range members { // everybody gives up what it has to, so that everybody can get what it must
			want := consumer.Allocate(all, ids, ids[j])
			m.settle(want)
		}

		for j, m := range members {
			want := consumer.Allocate(all, ids, ids[j])
			m.await("its share", func(a consumer.Assignment) bool {
				return slices.Equal(queuesOf(leasesOf(a, w.topic)), want)
			})
		}
	}
}

// settle waits until the member owns nothing but what it wants, perhaps not all of that, and releases the rest.
func (p *participant) settle(want []pipeline.Queue) {
	p.Helper()

	strange := func(l consumer.Lease) bool { return !slices.Contains(want, l.Queue) }
	before := leasesOf(p.assigned, p.topic)

	p.await("no more than its share", func(a consumer.Assignment) bool {
		return !slices.ContainsFunc(leasesOf(a, p.topic), strange)
	})

	for _, l := range before {
		if strange(l) {
			p.release(l)
		}
	}
}

func ownsRetryQueues(w *world) {
	w.queues(1)

	p := w.join("")
	p.await("the retry topic", func(a consumer.Assignment) bool {
		return len(leasesOf(a, consumer.RetryTopic(w.group))) > 0
	})
}

func leavingHandsOver(w *world) {
	const queues = 4

	w.queues(queues)

	a := w.join("member-1")
	a.awaitQueues(queues)
	b := w.join("member-2")
	left := time.Now()
	a.leave()
	b.awaitQueues(queues)

	if late := time.Since(left); w.features.HoldsBackQueues && late > time.Second {
		w.Errorf("the queues came %v after their owner had left", late)
	}
}

func releasedBeforeNext(w *world) {
	p, gone, robber := robbed(w)
	owns := func(a consumer.Assignment) bool {
		return slices.Contains(queuesOf(a.Leases), gone.Queue)
	}

	ctx, cancel := w.moment()
	defer cancel()

	for {
		a, err := robber.Assigned(ctx, robber.assigned.Generation)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}

		if err != nil || owns(a) {
			w.Fatalf("assigned %v, %v before the former owner released %s", a.Leases, err, gone.Queue)
		}

		robber.assigned = a
	}

	released := time.Now()
	p.release(gone)
	robber.await("the released queue", owns)

	if late := time.Since(released); late > time.Second {
		w.Errorf("the queue came %v after its release", late)
	}
}

func groupsAreApart(w *world) {
	const n = 10

	w.queues(1)
	w.publish(numbers(n)...)

	for _, group := range []string{w.group, w.group + "-other"} {
		p := w.subscribe(consumer.Subscription{Group: group, Topics: []string{w.topic}})
		l := p.awaitOne()

		got, next := p.collect(l, p.first(l), n)
		if !slices.Equal(texts(got), numbers(n)) {
			w.Errorf("group %s got %v", group, texts(got))
		}

		p.commit(l, consumer.Checkpoint{Next: next})
	}
}

func leftIsLeft(w *world) {
	w.queues(1)
	w.publish("a")

	p := w.join("")
	l := p.awaitOne()
	got, next := p.collect(l, p.first(l), 1)
	waiting := make(chan error, 1)

	go func() {
		for known := p.assigned.Generation; ; {
			a, err := p.Assigned(w.Context(), known)
			if err != nil {
				waiting <- err

				return
			}

			known = a.Generation
		}
	}()

	p.quiet(l, next)
	p.leave()

	ctx, cancel := w.within()
	defer cancel()

	for name, call := range map[string]func() error{
		"a waiting Assigned": func() error {
			select {
			case err := <-waiting:
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		"Assigned": func() error {
			_, err := p.Assigned(ctx, 0)

			return err
		},
		"Pull": func() error {
			_, err := p.Pull(ctx, l, next, consumer.Limit{Messages: 1, Bytes: plenty})

			return err
		},
		"Stored": func() error {
			_, err := p.Stored(ctx, l.Queue)

			return err
		},
		"Commit":   func() error { return p.Commit(ctx, l, consumer.Checkpoint{Next: next}) },
		"SendBack": func() error { return p.SendBack(ctx, got[0], 0) },
	} {
		if err := call(); !errors.Is(err, consumer.ErrLeft) {
			w.Errorf("%s after Leave: %v, want ErrLeft", name, err)
		}
	}
}

func assignedEndsWithContext(w *world) {
	w.queues(1)

	p := w.join("")
	p.awaitOne()

	ctx, cancel := w.moment()
	defer cancel()

	for {
		a, err := p.Assigned(ctx, p.assigned.Generation)
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}

		if err != nil {
			w.Fatalf("assigned: %v", err)
		}

		p.assigned = a
	}
}

func broadcastToEach(w *world) {
	const queues, n = 2, 10

	w.queues(queues)

	subscription := consumer.Subscription{Group: w.group, Topics: []string{w.topic}, Broadcast: true}
	members := make(map[string]*participant)

	for _, instance := range []string{"one", "two"} {
		subscription.Instance = instance
		members[instance] = w.subscribe(subscription)
		members[instance].awaitQueues(queues)
	}

	w.publish(numbers(n)...)

	for instance, p := range members {
		leases := p.awaitQueues(queues)
		got := 0

		for _, l := range leases {
			for from := p.first(l); from < p.find(l, pipeline.Last); {
				batch := p.pull(l, from, consumer.Limit{Messages: n, Bytes: plenty})
				from = batch.Next
				got += len(batch.Messages)
			}
		}

		if got != n {
			w.Errorf("member %s got %d messages, want %d", instance, got, n)
		}
	}

	one, two := members["one"], members["two"]
	l := one.awaitQueues(queues)[0]
	c := consumer.Checkpoint{Next: one.first(l) + 1, Done: []consumer.Run{{From: one.first(l) + 2, To: one.first(l) + 3}}}
	one.commit(l, c)
	two.wantNothingStored(l.Queue)
	one.leave()

	subscription.Instance = "one"
	w.subscribe(subscription).wantStored(l.Queue, c) // found again by its name
}
