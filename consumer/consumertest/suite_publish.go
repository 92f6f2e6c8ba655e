package consumertest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func publishing() []guarantee {
	return []guarantee{
		{"messages come back as they were published", nil, comeBackAsPublished},
		{"messages without an id get one of the broker's", nil, idsAreMadeUp},
		{"messages of every shape come back", nil, everyShape},
		{"messages of a key stay in one queue in their order", nil, keysKeepTheirOrder},
		{"publishers do not disturb each other", nil, publishersAtOnce},
		{"topics must exist", nil, topicsMustExist},
	}
}

func comeBackAsPublished(w *world) {
	w.queues(1)

	born := time.Now().Add(-time.Hour)
	sent := &pipeline.Message{
		ID: "id-" + w.topic, Key: "key", Tag: "tag", Body: []byte("body"), Born: born,
		Props: map[string]string{prop: before, "größe": "5 ½"},
	}
	w.send(sent)
	copy(sent.Body, "XXXX")
	sent.Props[prop] = "red"

	p := w.join("")
	l := p.awaitOne()
	got, _ := p.collect(l, p.first(l), 1)
	m := got[0]

	if m.ID != sent.ID || m.Topic != w.topic || m.Key != "key" || m.Tag != "tag" || string(m.Body) != "body" {
		w.Errorf("got %+v, want %+v in its first state", m, sent)
	}

	if m.Props[prop] != before || m.Props["größe"] != "5 ½" {
		w.Errorf("properties %v", m.Props)
	}

	if !m.Born.Truncate(time.Millisecond).Equal(born.Truncate(time.Millisecond)) {
		w.Errorf("born %v, want %v", m.Born, born)
	}

	if want := (pipeline.Origin{Queue: l.Queue, Offset: m.Origin.Offset, Epoch: l.Epoch, Delivery: 1}); m.Origin != want {
		w.Errorf("origin %+v, want %+v", m.Origin, want)
	}
}

func idsAreMadeUp(w *world) {
	w.queues(1)

	start := time.Now().Add(-time.Second)
	sent := []*pipeline.Message{{Body: []byte("a")}, {Body: []byte("b")}}
	w.send(sent...)

	if sent[0].ID != "" || !sent[0].Born.IsZero() || sent[0].Topic != "" {
		w.Errorf("publish changed its argument: %+v", sent[0])
	}

	p := w.join("")
	l := p.awaitOne()
	got, _ := p.collect(l, p.first(l), len(sent))

	if got[0].ID == "" || got[0].ID == got[1].ID {
		w.Errorf("ids %q and %q", got[0].ID, got[1].ID)
	}

	if got[0].Born.Before(start) || got[0].Born.After(time.Now().Add(time.Second)) {
		w.Errorf("born %v, want now", got[0].Born)
	}
}

func everyShape(w *world) {
	const megabyte = 1 << 20

	shapes := map[string]*pipeline.Message{
		"nothing": {},
		"big":     {Body: bytes.Repeat([]byte{7, 0, 255}, megabyte/3)},
		"binary":  {Body: []byte{0, 1, 2, 255, '\n', 0}, Key: "a b\tc", Tag: "größe"},
		"props":   {Body: []byte("x"), Props: map[string]string{"a": "", "b": "1=2, 3\n", "€": strings.Repeat("v", 2000)}},
	}

	w.queues(1)

	for name, m := range shapes {
		m.ID = name
		w.send(m)
	}

	p := w.join("")
	l := p.awaitOne()
	got, _ := p.collect(l, p.first(l), len(shapes))

	for _, m := range got {
		want := shapes[m.ID]
		if want == nil {
			w.Fatalf("an unknown message %q", m.ID)
		}

		if !bytes.Equal(m.Body, want.Body) || m.Key != want.Key || m.Tag != want.Tag {
			w.Errorf("%s came back different", m.ID)
		}

		for name, value := range want.Props {
			if got, ok := m.Props[name]; !ok || got != value {
				w.Errorf("%s: property %q is %q, want %q", m.ID, name, got, value)
			}
		}
	}
}

func keysKeepTheirOrder(w *world) {
	const queues, n = 4, 60

	w.queues(queues)

	keys := []string{"a", "b", "c", "d", "e"}

	for _, body := range numbers(n) {
		messages := make([]*pipeline.Message, len(keys))
		for i, key := range keys {
			messages[i] = &pipeline.Message{Key: key, Body: []byte(body)}
		}

		w.send(messages...)
	}

	p := w.join("")
	byKey := make(map[string][]string)

	for _, l := range p.awaitQueues(queues) {
		from := p.first(l)
		end := p.find(l, pipeline.Last)
		here := make(map[string]bool)

		for from < end {
			batch := p.pull(l, from, consumer.Limit{Messages: n, Bytes: plenty})
			from = batch.Next

			for _, m := range batch.Messages {
				if !here[m.Key] && byKey[m.Key] != nil {
					w.Fatalf("key %s is in two queues", m.Key)
				}

				here[m.Key] = true
				byKey[m.Key] = append(byKey[m.Key], string(m.Body))
			}
		}
	}

	for _, key := range keys {
		if !slices.Equal(byKey[key], numbers(n)) {
			w.Errorf("key %s: %v", key, byKey[key])
		}
	}
}

func publishersAtOnce(w *world) {
	const queues, publishers, each = 3, 8, 25

	w.queues(queues)

	ctx, cancel := w.within()
	defer cancel()

	var wg sync.WaitGroup
	for i := range publishers {
		wg.Go(func() {
			for _, body := range numbers(each) {
				m := &pipeline.Message{Body: []byte(string(rune('a'+i)) + body)}
				if err := w.harness.Bus.Publish(ctx, w.topic, []*pipeline.Message{m}); err != nil {
					w.Errorf("publish: %v", err)
				}
			}
		})
	}

	wg.Wait()

	p := w.join("")
	seen := make(map[string]int)

	for _, l := range p.awaitQueues(queues) {
		end := p.find(l, pipeline.Last)
		for from := p.first(l); from < end; {
			batch := p.pull(l, from, consumer.Limit{Messages: each, Bytes: plenty})
			from = batch.Next

			for _, m := range batch.Messages {
				seen[string(m.Body)]++
			}
		}
	}

	if len(seen) != publishers*each || slices.Max(slices.Collect(maps.Values(seen))) != 1 {
		w.Errorf("%d different messages, want %d, each once", len(seen), publishers*each)
	}
}

func topicsMustExist(w *world) {
	w.queues(1)

	ctx, cancel := w.within()
	defer cancel()

	missing := w.topic + "-missing"
	err := w.harness.Bus.Publish(ctx, missing, []*pipeline.Message{{Body: []byte("x")}})
	wantUnknownTopic(w.T, err, missing)

	_, err = w.harness.Bus.Join(ctx, consumer.Subscription{Group: w.group, Topics: []string{w.topic, missing}})
	wantUnknownTopic(w.T, err, missing)
}

func wantUnknownTopic(t *testing.T, err error, topic string) {
	t.Helper()

	if unknown, ok := errors.AsType[*consumer.UnknownTopicError](err); !ok || unknown.Topic != topic {
		t.Errorf("error %v, want an UnknownTopicError of %s", err, topic)
	}
}
