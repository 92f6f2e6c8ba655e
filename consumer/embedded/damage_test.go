package embedded

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// damaged returns a broker with a queue of ten messages, a function that replaces the stored value of one of them (nil
// deletes it), and that value.
func damaged(t *testing.T, o pipeline.Offset) (w *world, replace func(value []byte), value []byte) {
	t.Helper()

	w = openWorld(t, Options{Dir: flakyDir, FS: newFlakyDisk()})
	w.topic("t", 1)
	w.publish("t", someMessages(10)...)

	q, err := w.queue(pipeline.Queue{Topic: "t"})
	if err != nil {
		t.Fatal(err)
	}

	key := q.id.recordKey(nil, o)

	if _, err := w.store.get(key, func(v []byte) error { value = append(value, v...); return nil }); err != nil {
		t.Fatal(err)
	}

	return w, func(value []byte) {
		err := w.store.db.Set(key, value, pebble.Sync)
		if value == nil {
			err = w.store.db.Delete(key, pebble.Sync)
		}

		if err != nil {
			t.Fatal(err)
		}
	}, value
}

func someMessages(n int) []*pipeline.Message {
	messages := make([]*pipeline.Message, n)
	for i := range messages {
		messages[i] = &pipeline.Message{
			Key: fmt.Sprint("key-", i), Tag: "tag", Body: fmt.Appendf(nil, "body %d", i), Props: map[string]string{"p": "v"},
		}
	}

	return messages
}

// wantDamaged checks that a record cannot be read, is said to be damaged, and can be passed by.
func wantDamaged(t *testing.T, m *participant, o pipeline.Offset, what string, cause error) {
	t.Helper()

	l := m.one("t")
	limit := consumer.Limit{Messages: 100, Bytes: 1 << 20}

	if o > 0 {
		if before, err := m.Pull(t.Context(), l, 0, limit); err != nil || before.Next != o || len(before.Messages) != int(o) {
			t.Fatalf("%s: pulled %d to %d, %v; want what is before %d", what, len(before.Messages), before.Next, o, err)
		}
	}

	_, err := m.Pull(t.Context(), l, o, limit)

	damage, ok := errors.AsType[*consumer.DamagedError](err)
	if !ok || damage.Queue != l.Queue || damage.Offset != o || !errors.Is(err, cause) {
		t.Fatalf("%s: %v; want that offset %d is damaged: %v", what, err, o, cause)
	}

	if o == 9 {
		return
	}

	if behind, err := m.Pull(t.Context(), l, o+1, limit); err != nil || behind.Next != behind.End {
		t.Fatalf("%s: behind it: %+v, %v", what, behind, err)
	}

	back := &pipeline.Message{Origin: pipeline.Origin{Queue: l.Queue, Offset: o, Epoch: l.Epoch}}
	if err := m.SendBack(t.Context(), back, 0); !errors.As(err, &damage) {
		t.Fatalf("%s: sent back with %v", what, err)
	}
}

func TestDamagedRecordIsReported(t *testing.T) {
	t.Parallel()

	for _, o := range []pipeline.Offset{0, 4, 9} {
		w, replace, value := damaged(t, o)
		m := w.join("g", "t")

		for bit := range 8 * len(value) {
			flipped := append([]byte(nil), value...)
			flipped[bit/8] ^= 1 << (bit % 8)
			replace(flipped)

			cause := errSum
			if bit < 8 {
				cause = errVersion
			}

			wantDamaged(t, m, o, fmt.Sprintf("bit %d of offset %d", bit, o), cause)
		}

		for size := range value {
			replace(value[:size:size])

			cause := errSum
			if size < envelopeLen {
				cause = errShort
			}

			wantDamaged(t, m, o, fmt.Sprintf("the first %d bytes of offset %d", size, o), cause)
		}

		replace(nil)
		wantDamaged(t, m, o, fmt.Sprintf("no record at offset %d", o), errMissing)

		if d, err := w.Describe(t.Context()); err != nil || d.Damaged == 0 {
			t.Errorf("%d damaged records are counted, %v", d.Damaged, err)
		}

		replace(value)

		if got := m.all(m.one("t")); len(got) != 10 {
			t.Errorf("%d messages after the cure", len(got))
		}
	}
}

// TestRecordOfAnotherPlaceIsDamage puts the bytes of one record in the place of another.
func TestRecordOfAnotherPlaceIsDamage(t *testing.T) {
	t.Parallel()

	w, replace, _ := damaged(t, 4)
	q, _ := w.queue(pipeline.Queue{Topic: "t"})

	if _, err := w.store.get(q.id.recordKey(nil, 5), func(v []byte) error {
		replace(append([]byte(nil), v...))

		return nil
	}); err != nil {
		t.Fatal(err)
	}

	wantDamaged(t, w.join("g", "t"), 4, "another's record", errSum)
}

// TestDamageBeforeATimeIsNotSkipped looks for times around damaged records.
func TestDamageBeforeATimeIsNotSkipped(t *testing.T) {
	t.Parallel()

	w, replace, _ := damaged(t, 9)
	last := w.topics["t"].queues[0].view().stored
	w.publish("t", someMessages(1)...)
	replace(nil)

	m := w.join("g", "t")

	if o := m.find(m.one("t"), pipeline.StartAt(time.Unix(0, last+1))); o != 9 {
		t.Errorf("after the time of the damaged last one comes %d, want 9, which nobody can tell the time of", o)
	}
}
