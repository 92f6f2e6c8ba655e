package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/pipeline"
)

// box is a shelf in memory, of one queue.
type box struct {
	letters []*deadletter.Letter
	// published are the offsets of what was replayed, in order.
	published []pipeline.Offset
}

// boxOf returns a box of n letters that have died at the present time.
func boxOf(n int) *box {
	b := new(box)

	for i := range n {
		props := consumer.Cause{Stage: "work/check", Deliveries: 1}.Props("g", time.Now())
		b.letters = append(b.letters, &deadletter.Letter{
			Message: deadletter.Message{ID: fmt.Sprint("m", i), Key: "k", Props: props},
			Place:   deadletter.Place{Queue: pipeline.Queue{Topic: "graves"}, Offset: pipeline.Offset(i)},
		})
	}

	return b
}

func (b *box) DeadLetters(_ context.Context, q deadletter.Query, visit func(*deadletter.Letter) error) error {
	for _, l := range b.letters {
		if q.At != nil && *q.At != l.Place || l.Settled && !q.Settled {
			continue
		}

		if err := visit(l); err != nil {
			return err
		}
	}

	return nil
}

func (b *box) Settle(_ context.Context, _ string, all []deadletter.Settlement) error {
	for _, s := range all {
		b.letters[s.Place.Offset].Settled = true

		if s.Topic != "" {
			b.published = append(b.published, s.Place.Offset)
		}
	}

	return nil
}

func replaying(b *box, rate float64) deadletter.Work {
	return deadletter.Work{
		Shelf: b, Choice: deadletter.Choice{Topics: []string{"graves"}}, Do: deadletter.Replay{}.Settle, Rate: rate,
	}
}

func TestReplaysKeepTheirRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := boxOf(1500) // more than are held at once
		w := replaying(b, 100)
		began := time.Now()

		if n, more, err := w.Run(t.Context()); n != 1500 || more || err != nil {
			t.Errorf("%d, %t, %v", n, more, err)
		}

		if took := time.Since(began); took < 14*time.Second || took > 16*time.Second {
			t.Errorf("1500 letters at 100 a second took %v", took)
		}
	})
}

// Several works in a row, each with an end, are as slow as one and leave nothing out.
func TestAWorkThatEndsEarlySaysSoAndKeepsItsRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := boxOf(300)
		began := time.Now()
		runs := 0

		for more := true; more; runs++ {
			w := replaying(b, 10)
			w.End = time.Now().Add(5 * time.Second)

			var err error
			if _, more, err = w.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
		}

		if took := time.Since(began); took < 29*time.Second || took > 33*time.Second || runs < 5 {
			t.Errorf("300 letters at 10 a second took %v, in %d runs", took, runs)
		}

		for i, at := range b.published {
			if at != pipeline.Offset(i) {
				t.Fatalf("published were %v", b.published)
			}
		}
	})
}

func TestLettersThatAreSettledOrAbsentAreNamed(t *testing.T) {
	t.Parallel()

	b := boxOf(2)
	b.letters[1].Settled = true

	w := replaying(b, 0)
	w.Choice = deadletter.Choice{Places: []deadletter.Place{b.letters[1].Place}}

	if _, _, err := w.Run(t.Context()); !isError[*deadletter.SettledError](err) || len(b.published) != 0 {
		t.Errorf("%v, %v", err, b.published)
	}

	w.Again = true
	if n, _, err := w.Run(t.Context()); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}

	w.Choice.Places[0].Offset = 7
	if _, err := w.Count(t.Context()); !isError[*deadletter.UnknownLetterError](err) {
		t.Error(err)
	}
}

func isError[E error](err error) bool {
	_, ok := errors.AsType[E](err)

	return ok
}

func TestAnEditChangesWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()

	b := boxOf(1)
	b.letters[0].Props["mine"] = "old"
	at := b.letters[0].Place
	body := []byte("new")
	edit := func(e deadletter.Edit) (bool, error) {
		return deadletter.Replace(t.Context(), b, at, false, deadletter.Replay{}, e.Apply)
	}

	if changed, err := edit(deadletter.Edit{}); changed || err != nil || len(b.published) != 0 {
		t.Errorf("nothing to change: %t, %v", changed, err)
	}

	for _, e := range []deadletter.Edit{
		{Props: map[string]string{consumer.PropDeadGroup: "other"}}, {Remove: []string{consumer.PropDeadGroup}},
	} {
		if changed, err := edit(e); changed || err == nil {
			t.Errorf("%+v: %t, %v", e, changed, err)
		}
	}

	e := deadletter.Edit{Body: &body, Props: map[string]string{"other": "v"}, Remove: []string{"mine"}}
	if changed, err := edit(e); !changed || err != nil || !slices.Equal(b.published, []pipeline.Offset{0}) {
		t.Errorf("%t, %v, %v", changed, err, b.published)
	}

	l := b.letters[0]
	if own := l.OwnProps(); string(l.Body) != "new" || l.Key != "k" || len(own) != 1 || own["other"] != "v" {
		t.Errorf("it became %+v", l)
	}

	if changed, err := edit(e); changed || !isError[*deadletter.SettledError](err) {
		t.Errorf("when it is settled: %t, %v", changed, err)
	}
}
