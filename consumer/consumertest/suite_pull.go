package consumertest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func pulling() []guarantee {
	return []guarantee{
		{"offsets grow and a pull goes on at next", nil, offsetsGrow},
		{"offsets are dense", func(f Features) bool { return f.DenseOffsets }, offsetsAreDense},
		{"what was pulled belongs to the caller", nil, pulledBelongsToCaller},
		{"a pull keeps its limits", nil, pullKeepsLimits},
		{"a pull waits for a new message and wakes at once", nil, pullWaits},
		{"a pull ends with its context", nil, pullEndsWithContext},
		{"a pull outside of the queue is out of range", nil, pullOutOfRange},
	}
}

func offsetsGrow(w *world) {
	const n, step = 50, 7

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	from := p.first(l)

	var got []string

	for len(got) < n {
		batch := p.pull(l, from, consumer.Limit{Messages: step, Bytes: plenty})
		for _, m := range batch.Messages {
			if m.Origin.Offset < from {
				w.Fatalf("offset %d, want %d or more", m.Origin.Offset, from)
			}

			from = m.Origin.Offset + 1
		}

		if batch.Next < from || batch.End < batch.Next {
			w.Fatalf("next %d, end %d behind a last message at %d", batch.Next, batch.End, from-1)
		}

		from = batch.Next
		got = append(got, texts(batch.Messages)...)
	}

	if !slices.Equal(got, numbers(n)) {
		w.Errorf("got %v", got)
	}

	if end := p.find(l, pipeline.Last); end != from {
		w.Errorf("the end is %d, want %d", end, from)
	}
}

func offsetsAreDense(w *world) {
	const n = 20

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	got, next := p.collect(l, 0, n)

	for i, m := range got {
		if m.Origin.Offset != pipeline.Offset(i) {
			w.Fatalf("message %d has offset %d", i, m.Origin.Offset)
		}
	}

	if first, end := p.first(l), p.find(l, pipeline.Last); first != 0 || next != n || end != n {
		w.Errorf("first %d, next %d, end %d; want 0, %d, %d", first, next, end, n, n)
	}
}

func pulledBelongsToCaller(w *world) {
	w.queues(1)
	w.send(&pipeline.Message{Body: []byte("body"), Props: map[string]string{prop: before}})

	p := w.join("")
	l := p.awaitOne()

	for range 2 {
		got, _ := p.collect(l, p.first(l), 1)
		if m := got[0]; string(m.Body) != "body" || m.Props[prop] != before {
			w.Fatalf("a second pull sees what the first caller did: %+v", m)
		}

		copy(got[0].Body, "XXXX")
		got[0].Props[prop] = "red"
	}
}

func pullKeepsLimits(w *world) {
	const n, size = 10, 1000

	w.queues(1)

	for range n {
		w.publish(strings.Repeat("x", size))
	}

	p := w.join("")
	l := p.awaitOne()
	first := p.first(l)
	each := int64(p.pull(l, first, consumer.Limit{Messages: 1, Bytes: plenty}).Messages[0].Size())

	for name, c := range map[string]struct {
		limit consumer.Limit
		most  int
	}{
		"messages":         {consumer.Limit{Messages: 3, Bytes: plenty}, 3},
		"bytes":            {consumer.Limit{Messages: n, Bytes: 4*each + each/2}, 4},
		"bytes, exactly":   {consumer.Limit{Messages: n, Bytes: 4 * each}, 4},
		"bytes for no one": {consumer.Limit{Messages: n, Bytes: 1}, 1},
	} {
		batch := p.pull(l, first, c.limit)
		if got := len(batch.Messages); got < 1 || got > c.most {
			w.Errorf("%s: %d messages, want 1 to %d", name, got, c.most)
		}

		if last := batch.Messages[len(batch.Messages)-1]; batch.Next <= last.Origin.Offset {
			w.Errorf("%s: next %d, want above %d", name, batch.Next, last.Origin.Offset)
		}
	}
}

func pullWaits(w *world) {
	w.queues(1)

	p := w.join("")
	l := p.awaitOne()
	from := p.first(l)

	type answer struct {
		text string
		at   time.Time
	}

	answers := make(chan answer, 1)

	go func() {
		for from := from; ; {
			batch, err := p.Pull(w.Context(), l, from, consumer.Limit{Messages: 1, Bytes: plenty})
			if err != nil || len(batch.Messages) > 0 {
				answers <- answer{strings.Join(texts(batch.Messages), ""), time.Now()}

				return
			}

			from = batch.Next
		}
	}()

	p.quiet(l, from) // the other pull is under way now

	sent := time.Now()
	w.publish("awaited")

	ctx, cancel := w.within()
	defer cancel()

	select {
	case got := <-answers:
		// A broker that looks again at intervals would take half of one; a second is far above what waking up takes.
		if late := got.at.Sub(sent); got.text != "awaited" || late > time.Second {
			w.Errorf("got %q %v after it was published", got.text, late)
		}
	case <-ctx.Done():
		w.Error("the waiting pull missed the message")
	}
}

func pullEndsWithContext(w *world) {
	w.queues(1)

	p := w.join("")
	l := p.awaitOne()
	from := p.first(l)
	p.quiet(l, from) // ends by its deadline

	ctx, cancel := context.WithCancel(w.Context())
	failed := make(chan error, 1)

	go func() {
		_, err := p.Pull(ctx, l, from, consumer.Limit{Messages: 1, Bytes: plenty})
		failed <- err
	}()

	p.quiet(l, from)
	cancel()

	patience, stop := w.within()
	defer stop()

	select {
	case err := <-failed:
		if !errors.Is(err, context.Canceled) {
			w.Errorf("a cancelled pull: %v", err)
		}
	case <-patience.Done():
		w.Error("a cancelled pull goes on")
	}
}

func pullOutOfRange(w *world) {
	const n = 3

	w.queues(1)
	w.publish(numbers(n)...)

	p := w.join("")
	l := p.awaitOne()
	_, end := p.collect(l, p.first(l), n)
	beyond := end + 100

	ctx, cancel := w.within()
	defer cancel()

	_, err := p.Pull(ctx, l, beyond, consumer.Limit{Messages: 1, Bytes: plenty})

	outside, ok := errors.AsType[*consumer.OutOfRangeError](err)
	if !ok {
		w.Fatalf("a pull from %d, behind the end at %d: %v", beyond, end, err)
	}

	if outside.Queue != l.Queue || outside.From != beyond || outside.First != p.first(l) || outside.End != end {
		w.Errorf("error %+v", outside)
	}
}
