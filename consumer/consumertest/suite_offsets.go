package consumertest

import (
	"errors"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func starting() []guarantee {
	return []guarantee{
		{"the first and the last start position are the ends of the queue", nil, startsAtEnds},
		{"a start time means the first message published since", nil, startsAtTime},
	}
}

func committing() []guarantee {
	return []guarantee{
		{"a checkpoint is stored as it was committed", nil, checkpointRoundTrip},
		{"a checkpoint of many runs is stored", nil, checkpointOfManyRuns},
		{"a checkpoint belongs to a group and a queue", nil, checkpointsAreApart},
		{"a checkpoint outlives the member", nil, checkpointOutlivesMember},
		{"a commit after the lease has ended changes nothing", nil, commitAfterLease},
		{"a queue given back has a new epoch", nil, newEpochForReturnedQueue},
	}
}

func startsAtEnds(w *world) {
	w.queues(1)

	p := w.join("")
	l := p.awaitOne()

	if first, last := p.first(l), p.find(l, pipeline.Last); first != last {
		w.Errorf("an empty queue goes from %d to %d", first, last)
	}

	w.publish("a", "b")

	if got, next := p.collect(l, p.first(l), 2); string(got[0].Body) != "a" || p.find(l, pipeline.Last) != next {
		w.Errorf("first is %s, last %d; want a, %d", got[0].Body, p.find(l, pipeline.Last), next)
	}

	last := p.find(l, pipeline.Last)
	w.publish("c")

	if got, _ := p.collect(l, last, 1); string(got[0].Body) != "c" {
		w.Errorf("got %s from the last position on, want what was published since", got[0].Body)
	}
}

func startsAtTime(w *world) {
	w.queues(1)

	p := w.join("")
	l := p.awaitOne()

	var times []time.Time

	tick := func() {
		p.quiet(l, p.find(l, pipeline.Last)) // lets time pass

		times = append(times, time.Now())

		p.quiet(l, p.find(l, pipeline.Last))
	}

	tick()
	w.publish("a")
	tick()
	w.publish("b")
	tick()

	for i, want := range []string{"a", "b"} {
		if got, _ := p.collect(l, p.find(l, pipeline.StartAt(times[i])), 1); string(got[0].Body) != want {
			w.Errorf("got %s from %v on, want %s", got[0].Body, times[i], want)
		}
	}

	if since, end := p.find(l, pipeline.StartAt(times[2])), p.find(l, pipeline.Last); since != end {
		w.Errorf("nothing was published since, but that is offset %d and the end %d", since, end)
	}
}

func checkpointRoundTrip(w *world) {
	const n = 20

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	first := p.first(l)
	p.wantNothingStored(l.Queue)

	for _, c := range []consumer.Checkpoint{
		{Next: first},
		{Next: first, Done: []consumer.Run{{From: first + 1, To: first + 2}, {From: first + 5, To: first + 9}}},
		{Next: first + 2, Done: []consumer.Run{{From: first + 5, To: first + 9}}},
		{Next: first + n},
	} {
		p.commit(l, c)
		p.wantStored(l.Queue, c)
	}
}

func checkpointOfManyRuns(w *world) {
	const n = 2000

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	c := consumer.Checkpoint{Next: p.first(l)}

	for o := c.Next + 1; o < c.Next+n; o += 2 {
		c.Done = append(c.Done, consumer.Run{From: o, To: o + 1})
	}

	p.commit(l, c)
	p.wantStored(l.Queue, c)
}

func checkpointsAreApart(w *world) {
	const queues = 2

	w.queues(queues)
	w.publish(numbers(2 * queues)...)

	p := w.join("")
	leases := p.awaitQueues(queues)
	other := w.subscribe(consumer.Subscription{Group: w.group + "-other", Topics: []string{w.topic}})
	theirs := other.awaitQueues(queues)

	c := consumer.Checkpoint{Next: p.first(leases[0]) + 1}
	p.commit(leases[0], c)
	p.wantNothingStored(leases[1].Queue)
	other.wantNothingStored(leases[0].Queue)
	other.commit(theirs[0], consumer.Checkpoint{Next: c.Next - 1})
	p.wantStored(leases[0].Queue, c)
}

func checkpointOutlivesMember(w *world) {
	const n = 5

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	first := p.first(l)
	c := consumer.Checkpoint{Next: first + 1, Done: []consumer.Run{{From: first + 2, To: first + 4}}}
	p.commit(l, c)
	p.leave()

	next := w.join("")
	next.wantStored(next.awaitOne().Queue, c)
}

func wantNotOwner(w *world, what string, err error) {
	w.Helper()

	if !errors.Is(err, consumer.ErrNotOwner) {
		w.Errorf("%s: %v, want ErrNotOwner", what, err)
	}
}

// robbed returns a member that owned both queues of the topic, the lease of the one that was taken away from it, and the
// member that made it so.
func robbed(w *world) (p *participant, gone consumer.Lease, robber *participant) {
	w.Helper()

	const queues = 2

	w.queues(queues)
	w.publish(numbers(2 * queues)...)

	p = w.join("member-1")
	both := p.awaitQueues(queues)
	robber = w.join("member-2")
	kept := p.awaitOne()

	for _, l := range both {
		if l != kept {
			gone = l
		}
	}

	if gone == both[0] {
		w.Fatalf("of %v the second is for the second member", queuesOf(both))
	}

	return p, gone, robber
}

func commitAfterLease(w *world) {
	p, gone, robber := robbed(w)
	last := consumer.Checkpoint{Next: p.first(gone) + 1}

	if w.features.HoldsBackQueues {
		p.commit(gone, last) // its work may end
	}

	p.release(gone)

	l := robber.awaitOne()
	if l.Queue != gone.Queue {
		w.Fatalf("%s was given up, but %s went to the next member", gone.Queue, l.Queue)
	}

	robber.commit(l, last)
	wantNotOwner(w, "a commit of the former owner", p.tryCommit(gone, consumer.Checkpoint{Next: last.Next + 1}))
	robber.wantStored(gone.Queue, last)

	ctx, cancel := w.within()
	defer cancel()

	_, err := p.Pull(ctx, gone, last.Next, consumer.Limit{Messages: 1, Bytes: plenty})
	wantNotOwner(w, "a pull of the former owner", err)

	mixed := consumer.Lease{Queue: l.Queue, Epoch: l.Epoch + 1}
	wantNotOwner(w, "a commit under a lease that never was", robber.tryCommit(mixed, consumer.Checkpoint{Next: last.Next + 1}))
	robber.wantStored(gone.Queue, last)
}

func newEpochForReturnedQueue(w *world) {
	p, gone, robber := robbed(w)
	p.release(gone)
	robber.awaitOne()
	robber.leave()

	back := p.awaitQueues(2)[1]
	if back.Queue != gone.Queue || back.Epoch == gone.Epoch {
		w.Fatalf("lease %+v was taken away and came back as %+v", gone, back)
	}

	c := consumer.Checkpoint{Next: p.first(back) + 1}
	wantNotOwner(w, "a commit under the old epoch", p.tryCommit(gone, c))
	p.wantNothingStored(gone.Queue)
	p.commit(back, c)
	p.wantStored(gone.Queue, c)
}
