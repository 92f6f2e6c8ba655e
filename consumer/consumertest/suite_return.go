package consumertest

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func returning() []guarantee {
	idempotent := func(f Features) bool { return f.RedeliveryIdempotent }

	return []guarantee{
		{"a message sent back comes again after its delay", nil, comesAgain},
		{"a message sent back again and again counts its deliveries", nil, countsDeliveries},
		{"a message sent back twice comes again once", idempotent, comesAgainOnce},
		{"a dead letter says where it comes from and why", nil, deadLetterSaysWhy},
		{"a dead letter goes to the topic that it is meant for", nil, deadLetterTopic},
		{"a message dead-lettered twice is one dead letter", idempotent, deadOnce},
		{"what is not there cannot be returned", nil, nothingToReturn},
		{
			"what was returned is finished, whatever was committed",
			func(f Features) bool { return f.ReturnedIsFinished }, returnedIsFinished,
		},
	}
}

// retries waits for the lease of the group's retry topic that has a message at or above where it was looked at last, and
// returns that message.
func (p *participant) retried(seen map[pipeline.Queue]pipeline.Offset) *pipeline.Message {
	p.Helper()

	topic := consumer.RetryTopic(p.group)
	p.await("the retry topic", func(a consumer.Assignment) bool { return len(leasesOf(a, topic)) > 0 })

	ctx, cancel := p.within()
	defer cancel()

	type answer struct {
		batch consumer.Batch
		err   error
	}

	leases := leasesOf(p.assigned, topic)
	answers := make(chan answer, len(leases))

	for _, l := range leases { // nobody knows in which queue it will be
		from, ok := seen[l.Queue]
		if !ok {
			from = p.first(l)
		}

		go func() {
			for {
				batch, err := p.Pull(ctx, l, from, consumer.Limit{Messages: 1, Bytes: plenty})
				if err != nil || len(batch.Messages) > 0 {
					answers <- answer{batch, err}

					return
				}

				from = batch.Next
			}
		}()
	}

	first := <-answers
	cancel()

	for range len(leases) - 1 {
		<-answers
	}

	if first.err != nil {
		p.Fatalf("waiting for a redelivery: %v", first.err)
	}

	m := first.batch.Messages[0]
	seen[m.Origin.Queue] = m.Origin.Offset + 1

	return m
}

func (p *participant) sendBack(m *pipeline.Message, delay time.Duration) {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	if err := p.SendBack(ctx, m, delay); err != nil {
		p.Fatalf("send back %s: %v", m.ID, err)
	}
}

func (p *participant) deadLetter(m *pipeline.Message, c consumer.Cause) {
	p.Helper()

	ctx, cancel := p.within()
	defer cancel()

	if err := p.DeadLetter(ctx, m, c); err != nil {
		p.Fatalf("dead-letter %s: %v", m.ID, err)
	}
}

// original is a message with something in each field.
func original() *pipeline.Message {
	return &pipeline.Message{
		Key: "key", Tag: "tag", Body: []byte("body"), Props: map[string]string{prop: before},
	}
}

// taken publishes the original and pulls it; a stage has spoilt the copy that comes with it.
func taken(w *world) (p *participant, pulled, spoilt *pipeline.Message) {
	w.Helper()
	w.queues(1)
	w.send(original())

	p = w.join("")
	l := p.awaitOne()
	got, _ := p.collect(l, p.first(l), 1)
	pulled = got[0].Clone()
	spoilt = got[0]
	spoilt.Body, spoilt.Key, spoilt.Topic, spoilt.ID = []byte("spoilt"), "spoilt", "spoilt", "spoilt"
	spoilt.SetProp(prop, "red")

	return p, pulled, spoilt
}

// wantCopy checks that m is a copy of what was stored at the origin of pulled, and says so where placed.
func wantCopy(w *world, m, pulled *pipeline.Message, placed bool) {
	w.Helper()

	want := original()
	if !bytes.Equal(m.Body, want.Body) || m.Key != want.Key || m.Tag != want.Tag || m.ID != pulled.ID {
		w.Errorf("got id %s, key %s, tag %s, body %s; want %s and what was published", m.ID, m.Key, m.Tag, m.Body, pulled.ID)
	}

	for name, value := range map[string]string{
		prop:                      before,
		consumer.PropOriginID:     pulled.ID,
		consumer.PropOriginTopic:  w.topic,
		consumer.PropOriginQueue:  pulled.Origin.Queue.String(),
		consumer.PropOriginOffset: strconv.FormatInt(int64(pulled.Origin.Offset), 10),
	} {
		isPlace := name == consumer.PropOriginQueue || name == consumer.PropOriginOffset
		if m.Props[name] != value && (placed || !isPlace) {
			w.Errorf("property %s is %q, want %q", name, m.Props[name], value)
		}
	}
}

func comesAgain(w *world) {
	p, pulled, spoilt := taken(w)
	start := time.Now()
	p.sendBack(spoilt, w.features.Delay)

	m := p.retried(make(map[pipeline.Queue]pipeline.Offset))
	if took := time.Since(start); took < w.features.Delay-w.features.Delay/10 {
		w.Errorf("it came after %v, want %v", took, w.features.Delay)
	}

	wantCopy(w, m, pulled, w.features.TellsReturnedPlace)

	if m.Topic != w.topic || m.Origin.Delivery != 2 || m.Origin.Queue.Topic != consumer.RetryTopic(w.group) {
		w.Errorf("topic %s, origin %+v; want %s and delivery 2 from the retry topic", m.Topic, m.Origin, w.topic)
	}
}

func countsDeliveries(w *world) {
	const most = 4

	p, pulled, m := taken(w)
	seen := make(map[pipeline.Queue]pipeline.Offset)

	for delivery := 2; delivery <= most; delivery++ {
		p.sendBack(m, w.features.Delay)
		m = p.retried(seen)

		if m.Origin.Delivery != delivery || m.ID != pulled.ID || m.Topic != w.topic ||
			m.Props[consumer.PropOriginID] != pulled.ID || m.Props[consumer.PropOriginTopic] != w.topic {
			w.Fatalf("delivery %d: %+v", delivery, m)
		}
	}
}

func comesAgainOnce(w *world) {
	p, _, m := taken(w)
	seen := make(map[pipeline.Queue]pipeline.Offset)

	for range 3 {
		p.sendBack(m, w.features.Delay)
	}

	again := p.retried(seen)
	p.sendBack(m, 0)

	for _, l := range leasesOf(p.assigned, consumer.RetryTopic(w.group)) {
		from := p.first(l)
		if l.Queue == again.Origin.Queue {
			from = again.Origin.Offset + 1
		}

		p.quiet(l, from)
	}
}

func someCause(topic string) consumer.Cause {
	return consumer.Cause{
		Topic: topic, Stage: "channel/stage", Error: "it broke", Stack: "main.go:1", Deliveries: 3,
		Attempts: []consumer.Attempt{
			{Time: time.Unix(1, 0), Delivery: 2, Stage: "channel/other", Error: "no"},
			{Time: time.Unix(2, 0), Delivery: 3, Stage: "channel/stage", Error: "it broke"},
		},
	}
}

// mourner returns a member of another group that reads dead letters, and its leases.
func mourner(w *world, topic string) (*participant, []consumer.Lease) {
	w.Helper()

	p := w.subscribe(consumer.Subscription{Group: w.group + "-mourners", Topics: []string{topic}})
	p.await("the dead letters", func(a consumer.Assignment) bool { return len(leasesOf(a, topic)) > 0 })

	return p, leasesOf(p.assigned, topic)
}

// deadLetters returns the dead letters that a topic holds now.
func deadLetters(w *world, topic string) []*pipeline.Message {
	w.Helper()

	p, leases := mourner(w, topic)
	defer p.leave()

	const some = 10

	var all []*pipeline.Message

	for _, l := range leases {
		for from := p.first(l); from < p.find(l, pipeline.Last); {
			batch := p.pull(l, from, consumer.Limit{Messages: some, Bytes: plenty})
			from = batch.Next
			all = append(all, batch.Messages...)
		}
	}

	return all
}

func deadLetterSaysWhy(w *world) {
	p, pulled, spoilt := taken(w)
	cause := someCause("")
	p.deadLetter(spoilt, cause)

	dead := deadLetters(w, consumer.DeadLetterTopic(w.group))
	if len(dead) != 1 {
		w.Fatalf("%d dead letters, want 1", len(dead))
	}

	wantCopy(w, dead[0], pulled, true)

	got, ok := consumer.CauseOf(dead[0].Props)
	if !ok || got.Time.IsZero() || got.Group != w.group {
		w.Errorf("it says %+v", got)
	}

	for name, value := range cause.Props(w.group, got.Time) {
		if dead[0].Props[name] != value {
			w.Errorf("property %s is %q, want %q", name, dead[0].Props[name], value)
		}
	}
}

func deadLetterTopic(w *world) {
	p, pulled, spoilt := taken(w)
	topic := w.topic + "-dead"
	w.harness.CreateTopic(w.T, topic, 1)
	p.deadLetter(spoilt, someCause(topic))

	dead := deadLetters(w, topic)
	if len(dead) != 1 {
		w.Fatalf("%d dead letters, want 1", len(dead))
	}

	wantCopy(w, dead[0], pulled, true)
}

func deadOnce(w *world) {
	p, _, m := taken(w)

	for range 3 {
		p.deadLetter(m, someCause(""))
	}

	if dead := deadLetters(w, consumer.DeadLetterTopic(w.group)); len(dead) != 1 {
		w.Errorf("%d dead letters, want 1", len(dead))
	}
}

func nothingToReturn(w *world) {
	p, pulled, _ := taken(w)
	pulled.Origin.Offset += 1000

	ctx, cancel := w.within()
	defer cancel()

	if err := p.SendBack(ctx, pulled, 0); err == nil {
		w.Error("a message that the queue does not hold was sent back")
	}

	if err := p.DeadLetter(ctx, pulled, someCause("")); err == nil {
		w.Error("a message that the queue does not hold was dead-lettered")
	}
}

func returnedIsFinished(w *world) {
	const n = 6

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	got, _ := p.collect(l, p.first(l), n)
	at := func(i int) pipeline.Offset { return got[i].Origin.Offset }
	run := func(i int) consumer.Run { return consumer.Run{From: at(i), To: at(i) + 1} }

	p.commit(l, consumer.Checkpoint{Next: at(0), Done: []consumer.Run{run(4)}})
	p.sendBack(got[2], w.features.Delay)
	p.deadLetter(got[0], someCause(""))
	p.leave()

	next := w.join("")
	l = next.awaitOne()

	ctx, cancel := w.within()
	defer cancel()

	c, err := next.Stored(ctx, l.Queue)
	if err != nil {
		w.Fatalf("stored: %v", err)
	}

	var finished []int

	for i := range n {
		if c.Finished(at(i)) {
			finished = append(finished, i)
		}
	}

	if err := c.Validate(); err != nil || !slices.Equal(finished, []int{0, 2, 4}) {
		w.Errorf("stored %v (%v): finished are %v, want 0 and 2, which were returned, and 4", c, err, finished)
	}
}
