package consumertest

import (
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func reopening() []guarantee {
	persists := func(f Features) bool { return f.PersistsAcrossRestart }

	return []guarantee{
		{"messages outlive the broker's process", persists, messagesPersist},
		{"checkpoints outlive the broker's process", persists, checkpointsPersist},
		{"redeliveries outlive the broker's process", persists, redeliveriesPersist},
		{"dead letters outlive the broker's process", persists, deadLettersPersist},
		{"offsets of broadcasting members outlive the broker's process", persists, broadcastPersists},
	}
}

func messagesPersist(w *world) {
	const n = 10

	w.queues(1)
	w.publish(numbers(n)[:n/2]...)
	w.reopen()
	w.publish(numbers(n)[n/2:]...)

	p := w.join("")
	l := p.awaitOne()

	if got, _ := p.collect(l, p.first(l), n); !slices.Equal(texts(got), numbers(n)) {
		w.Errorf("got %v", texts(got))
	}
}

func checkpointsPersist(w *world) {
	const n = 10

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	got, _ := p.collect(l, p.first(l), n)
	at := func(i int) pipeline.Offset { return got[i].Origin.Offset }
	c := consumer.Checkpoint{Next: at(2), Done: []consumer.Run{{From: at(4), To: at(5)}, {From: at(7), To: at(9)}}}
	p.commit(l, c)
	p.leave()
	w.reopen()

	next := w.join("")
	again := next.awaitOne()
	next.wantStored(again.Queue, c)

	// A lease does not outlive the process either.
	old := consumer.Lease{Queue: again.Queue, Epoch: again.Epoch + 1}
	wantNotOwner(w, "a commit under a lease that is not the present one", next.tryCommit(old, consumer.Checkpoint{Next: at(9)}))
}

func redeliveriesPersist(w *world) {
	p, pulled, spoilt := taken(w)
	p.sendBack(spoilt, w.features.Delay)
	p.leave()
	w.reopen()

	next := w.join("")
	m := next.retried(make(map[pipeline.Queue]pipeline.Offset))
	wantCopy(w, m, pulled, w.features.TellsReturnedPlace)

	if m.Origin.Delivery != 2 {
		w.Errorf("delivery %d, want 2", m.Origin.Delivery)
	}
}

func deadLettersPersist(w *world) {
	p, pulled, spoilt := taken(w)
	p.deadLetter(spoilt, someCause(""))
	p.leave()
	w.reopen()

	dead := deadLetters(w, consumer.DeadLetterTopic(w.group))
	if len(dead) != 1 {
		w.Fatalf("%d dead letters, want 1", len(dead))
	}

	wantCopy(w, dead[0], pulled, true)
}

func broadcastPersists(w *world) {
	w.queues(1)
	w.publish("a", "b")

	subscription := consumer.Subscription{Group: w.group, Topics: []string{w.topic}, Broadcast: true, Instance: "one"}
	p := w.subscribe(subscription)
	l := p.awaitOne()
	c := consumer.Checkpoint{Next: p.first(l) + 1}
	p.commit(l, c)
	p.leave()
	w.reopen()
	w.subscribe(subscription).wantStored(l.Queue, c)
}
