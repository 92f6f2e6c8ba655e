package producer_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/producer"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

func TestABatchIsStoredWhole(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("T", 2)

		batch := []producer.Message{
			{Body: []byte("a"), Tag: "A", Flag: 1},
			{Body: []byte("b"), Key: "k", Flag: 2},
			{Body: []byte(strings.Repeat("compressed", 1000))},
			{Body: []byte("late"), Delay: 1},
			{},
			{Body: []byte("old"), Born: time.UnixMilli(1700000000000)},
			{Body: []byte("c"), Key: "k"},
		}
		for range 30 {
			batch = append(batch, producer.Message{Body: noise(100_000), Props: map[string]string{"p": "x"}, Born: time.UnixMilli(5)})
		}

		sent, err := w.producer.SendBatch(t.Context(), "T", batch)
		if err != nil || len(sent) != len(batch) {
			t.Fatalf("%d are sent, %v", len(sent), err)
		}

		<-time.After(2 * time.Second)

		stored := w.reader.topic("T")

		for i, s := range sent {
			if batch[i].Delay > 0 {
				continue // its place is among the delayed
			}

			r := stored[s.Queue][s.Offset]
			tag, _ := r.Props.Get("TAGS")
			key, _ := r.Props.Get("KEYS")

			if r.ID() != s.ID || tag != batch[i].Tag || key != batch[i].Key || r.Flag != batch[i].Flag || !s.Durable ||
				len(batch[i].Body) > 0 && !bytes.Equal(r.Body, batch[i].Body) {
				t.Errorf("%d is stored as %.200v, sent as %+v", i, r, s)
			}

			if want := batch[i].Born; !want.IsZero() && r.Born != want.UnixMilli() {
				t.Errorf("%d was born at %d", i, r.Born)
			}
		}

		if got := w.reader.bodies("T"); got["late"] != 1 || len(got) != 8 {
			t.Errorf("%d different bodies", len(got))
		}
	})
}

func TestWhatFailsOfABatchIsNamed(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{MaxSize: 1000})
		w.CreateTopic("T", 2)

		sent, err := w.producer.SendBatch(t.Context(), "T", []producer.Message{
			{Body: []byte("a")}, {Body: make([]byte, 1001)}, {Body: []byte("b"), Key: "k"}, {Delay: -1},
		})

		failed, ok := errors.AsType[*pipeline.BatchError](err)
		if !ok || !slices.Equal(slices.Sorted(maps.Keys(failed.Failed)), []int{1, 3}) || !errors.Is(failed.Failed[1], producer.ErrTooLarge) ||
			!errors.Is(failed.Failed[3], producer.ErrInvalid) {
			t.Errorf("the error is %v", err)
		}

		if !pipeline.IsRejected(failed.Failed[1]) || !pipeline.IsRejected(failed.Failed[3]) {
			t.Errorf("what no attempt will change is not rejected: %v", err)
		}

		if sent[0].ID == "" || sent[2].ID == "" || sent[1].ID != "" {
			t.Errorf("sent are %+v", sent)
		}

		if got := fmt.Sprint(w.reader.bodies("T")); got != "map[a:1 b:1]" {
			t.Errorf("stored are %s", got)
		}

		w.Fault(rocketmqfake.Faults{Send: 1})

		_, err = w.producer.SendBatch(t.Context(), "T", make([]producer.Message, 3))
		if failed, ok := errors.AsType[*pipeline.BatchError](err); !ok || len(failed.Failed) != 3 || pipeline.IsRejected(failed.Failed[0]) {
			t.Errorf("the error is %v", err)
		}
	})
}

func TestNothingBehindAFailureOfItsKeyIsSent(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{MaxSize: 8 << 20, CompressAbove: -1})
		w.CreateTopic("T", 1)

		batch := []producer.Message{
			{Key: "k", Body: []byte("first")}, {Key: "k", Body: make([]byte, 5<<20)}, {Key: "k", Body: []byte("last")},
		}

		_, err := w.producer.SendBatch(t.Context(), "T", batch)
		if failed, ok := errors.AsType[*pipeline.BatchError](err); !ok || len(failed.Failed) != 2 || failed.Failed[0] != nil ||
			!pipeline.IsRejected(failed.Failed[1]) || pipeline.IsRejected(failed.Failed[2]) {
			t.Errorf("the error is %v; the second is to be rejected, and the last only waits for it", err)
		}

		if got := fmt.Sprint(w.reader.bodies("T")); got != "map[first:1]" {
			t.Errorf("stored are %s", got)
		}
	})
}

func TestRetriesAreSentOneByOne(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		w := setup(t, rocketmqfake.Options{}, producer.Options{})
		w.CreateTopic("%RETRY%g", 1)

		all := []*pipeline.Message{{Body: []byte("a")}, {Body: []byte("b")}}
		if err := w.producer.Publish(t.Context(), "%RETRY%g", all); err != nil {
			t.Error(err)
		}

		if got := fmt.Sprint(w.reader.bodies("%RETRY%g")); got != "map[a:1 b:1]" {
			t.Errorf("stored are %s", got)
		}
	})
}
