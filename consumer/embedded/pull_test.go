package embedded

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestPullKeepsItsLimits(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)
	m := w.join("g", "t")
	l := m.one("t")

	const size = 100

	var messages []*pipeline.Message
	for range 10 {
		messages = append(messages, &pipeline.Message{ID: "0123456789", Body: make([]byte, size-10)})
	}

	messages[7].Body = make([]byte, 10*size)
	w.publish("t", messages...)

	for _, c := range []struct {
		from  pipeline.Offset
		limit consumer.Limit
		want  int
	}{
		{0, consumer.Limit{Messages: 3, Bytes: 1 << 20}, 3},
		{0, consumer.Limit{Messages: 100, Bytes: 3 * size}, 3},
		{0, consumer.Limit{Messages: 100, Bytes: 3*size + size - 1}, 3},
		{0, consumer.Limit{Messages: 100, Bytes: 1}, 1},
		{0, consumer.Limit{Messages: 100}, 1},
		{6, consumer.Limit{Messages: 100, Bytes: 5 * size}, 1},
		{7, consumer.Limit{Messages: 100, Bytes: 5 * size}, 1},
		{8, consumer.Limit{Messages: 100, Bytes: 5 * size}, 2},
		{0, consumer.Limit{Messages: 100, Bytes: 1 << 40}, 10},
	} {
		batch, err := m.Pull(t.Context(), l, c.from, c.limit)
		if err != nil || len(batch.Messages) != c.want || batch.Next != c.from+pipeline.Offset(c.want) || batch.End != 10 {
			t.Errorf("from %d with %+v: %d messages, next %d, end %d, %v; want %d messages",
				c.from, c.limit, len(batch.Messages), batch.Next, batch.End, err, c.want)
		}
	}

	if _, err := m.Pull(t.Context(), l, 0, consumer.Limit{Bytes: 1}); err == nil {
		t.Error("a pull of no messages was done")
	}

	for _, from := range []pipeline.Offset{-1, 11} {
		_, err := m.Pull(t.Context(), l, from, consumer.Limit{Messages: 1, Bytes: 1})

		out, ok := errors.AsType[*consumer.OutOfRangeError](err)
		if want := (consumer.OutOfRangeError{Queue: l.Queue, From: from, First: 0, End: 10}); !ok || *out != want {
			t.Errorf("from %d: %v, want %v", from, err, &want)
		}
	}
}

// TestBatchIsTheCallersOwn checks that no two messages share bytes that can be appended to or changed, also over pulls.
func TestBatchIsTheCallersOwn(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)

	var messages []*pipeline.Message
	for i := range 50 {
		messages = append(messages, &pipeline.Message{Key: "key", Body: bytes.Repeat([]byte{byte(i)}, 10*i), Props: map[string]string{"p": "v"}})
	}

	w.publish("t", messages...)

	m := w.join("g", "t")
	l := m.one("t")
	first := m.pull(l, 0, 50).Messages

	for _, message := range first {
		message.Body = append(message.Body, "scribble"...)
		clear(message.Body)
		message.Props["p"] = "scribble"
	}

	for i, message := range m.pull(l, 0, 50).Messages {
		if !bytes.Equal(message.Body, messages[i].Body) || message.Props["p"] != "v" || message.Key != "key" {
			t.Errorf("message %d is %+v", i, message)
		}
	}
}

func TestPullWaitsAndWakes(t *testing.T) {
	t.Parallel()

	const hold = 50 * time.Millisecond

	w := openWorld(t, Options{Dir: t.TempDir(), HoldPull: hold})
	w.topic("t", 1)
	m := w.join("g", "t")
	l := m.one("t")
	limit := consumer.Limit{Messages: 10, Bytes: 1 << 20}

	start := time.Now()

	batch, err := m.Pull(t.Context(), l, 0, limit)
	if err != nil || len(batch.Messages) > 0 || batch.Next != 0 || batch.End != 0 || time.Since(start) < hold {
		t.Errorf("after %v: %+v, %v; want an empty batch after %v", time.Since(start), batch, err, hold)
	}

	ctx, cancel := context.WithTimeout(t.Context(), hold/10)
	defer cancel()

	if _, err := m.Pull(ctx, l, 0, limit); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a pull that is cut short: %v", err)
	}

	patient := openWorld(t, Options{Dir: t.TempDir(), HoldPull: time.Hour})
	patient.topic("t", 2)
	m = patient.join("g", "t")
	pulled := make(chan consumer.Batch)

	for _, l := range m.await("t", 2) {
		go func() {
			batch, _ := m.Pull(t.Context(), l, 0, limit) // an error is an empty batch
			pulled <- batch
		}()
	}

	patient.publishN("t", 2) // one a queue

	for range 2 {
		if batch := <-pulled; len(batch.Messages) != 1 {
			t.Errorf("woken with %+v", batch)
		}
	}
}

func TestCloseEndsWhatWaits(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir(), Retention: Retention{Age: 1}})
	w.topic("t", 1)
	m := w.join("g", "t")
	l := m.one("t")
	ended := make(chan error, 2)

	go func() {
		_, err := m.Pull(t.Context(), l, 0, consumer.Limit{Messages: 1, Bytes: 1})
		ended <- err
	}()

	go func() {
		_, err := m.Assigned(t.Context(), m.assigned.Generation)
		ended <- err
	}()

	w.close()

	for range 2 {
		if err := <-ended; !errors.Is(err, consumer.ErrClosed) {
			t.Errorf("ended with %v, want ErrClosed", err)
		}
	}

	for name, call := range map[string]func() error{
		"Publish":     func() error { return w.Publish(t.Context(), "t", []*pipeline.Message{{}}) },
		"CreateTopic": func() error { return w.CreateTopic(t.Context(), "u", 1) },
		"Commit":      func() error { return m.Commit(t.Context(), l, consumer.Checkpoint{}) },
		"SendBack":    func() error { return m.SendBack(t.Context(), &pipeline.Message{}, 0) },
		"Stored":      func() error { _, err := m.Stored(t.Context(), l.Queue); return err },
		"Prune":       func() error { _, err := w.Prune(t.Context()); return err },
		"Describe":    func() error { _, err := w.Describe(t.Context()); return err },
		"Release":     func() error { return m.Release(t.Context(), l) },
		"Leave":       func() error { return m.Leave(t.Context()) },
	} {
		if err := call(); !errors.Is(err, consumer.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

func TestStartTimeIsFound(t *testing.T) {
	t.Parallel()

	w := openWorld(t, Options{Dir: t.TempDir()})
	w.topic("t", 1)

	const n = 37
	for range n {
		w.publishN("t", 1)
	}

	m := w.join("g", "t")
	l := m.one("t")

	// As they were stored, two of them at the same time: a clock that stands still or goes back.
	times := make([]int64, n)
	for i := range times {
		times[i] = int64(1000 + 10*(i-i%2))
	}

	rewrite(t, w, times)

	for at := int64(990); at < 1000+10*n; at += 5 {
		want := pipeline.Offset(0)
		for int(want) < n && times[want] < at {
			want++
		}

		if got := m.find(l, pipeline.StartAt(time.Unix(0, at))); got != want {
			t.Errorf("from %d on: offset %d, want %d", at, got, want)
		}
	}

	if first, last := m.find(l, pipeline.First), m.find(l, pipeline.Last); first != 0 || last != n {
		t.Errorf("from %d to %d, want 0 to %d", first, last, n)
	}

	if _, err := m.Find(t.Context(), pipeline.Queue{Topic: "t", ID: 1}, pipeline.First); err == nil {
		t.Error("the first offset of a queue that does not exist was found")
	}
}

// rewrite gives the messages of the first queue of topic t other times.
func rewrite(t *testing.T, w *world, times []int64) {
	t.Helper()

	tx, err := w.store.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	q := w.topics["t"].queues[0]

	for i, at := range times {
		r := record{stored: at, pos: int64(i)}
		if _, err := tx.enc.putRecord(tx.batch, q.id.recordKey(nil, pipeline.Offset(i)), &r); err != nil {
			t.Fatal(err)
		}
	}

	if err := tx.commit(); err != nil {
		t.Fatal(err)
	}
}

// TestClockThatGoesBack publishes before the time of the last message.
func TestClockThatGoesBack(t *testing.T) {
	t.Parallel()

	o := Options{Dir: t.TempDir()}
	w := openWorld(t, o)
	w.topic("t", 1)

	future := time.Now().Add(time.Hour).UnixNano()

	tx, err := w.store.begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if err := errors.Join(tx.append(w.topics["t"].queues[0], &record{}, future), tx.commit()); err != nil {
		t.Fatal(err)
	}

	w.reopen(o)
	w.publishN("t", 1)

	m := w.join("g", "t")

	if got := m.find(m.one("t"), pipeline.StartAt(time.Unix(0, future))); got != 0 {
		t.Errorf("offset %d", got)
	}

	if got := m.find(m.one("t"), pipeline.StartAt(time.Unix(0, future+1))); got != 2 {
		t.Errorf("offset %d is stored later than the future", got)
	}
}
