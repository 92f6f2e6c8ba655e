package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

var errRefused = errors.New("refused")

// refusing is a publisher that publishes when it is not told to refuse.
type refusing struct {
	consumer.Publisher

	refuse bool
}

func (r *refusing) Publish(ctx context.Context, topic string, messages []*pipeline.Message) error {
	if r.refuse {
		return errRefused
	}

	return r.Publisher.Publish(ctx, topic, messages)
}

// setup returns a desk over six letters in two queues of "graves", and its publisher.
func setup(t *testing.T) (*deadletter.Desk, *refusing) {
	t.Helper()

	broker, err := embedded.Open(embedded.Options{Dir: t.TempDir(), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := broker.Close(); err != nil {
			t.Error(err)
		}
	})

	for topic, queues := range map[string]int{"graves": 2, "in": 1} {
		if err := broker.CreateTopic(t.Context(), topic, queues); err != nil {
			t.Fatal(err)
		}
	}

	for i := range 6 {
		props := consumer.Cause{Deliveries: i + 1}.Props("g", time.Now())
		props[consumer.PropOriginID] = fmt.Sprint("m", i)

		err := broker.Publish(t.Context(), "graves", []*pipeline.Message{{ID: fmt.Sprint("copy", i), Props: props}})
		if err != nil {
			t.Fatal(err)
		}
	}

	p := &refusing{Publisher: broker}

	return deadletter.NewDesk(broker, p), p
}

// read returns the letters of a topic that are not settled, or all.
func read(t *testing.T, d *deadletter.Desk, topic string, settled bool) []*deadletter.Letter {
	t.Helper()

	var all []*deadletter.Letter

	err := d.DeadLetters(t.Context(), deadletter.Query{Topic: topic, Settled: settled}, func(l *deadletter.Letter) error {
		all = append(all, l)

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func TestWhatIsSettledIsRememberedInAnyOrder(t *testing.T) {
	t.Parallel()

	d, _ := setup(t)
	letters := read(t, d, "graves", false)

	if len(letters) != 6 {
		t.Fatalf("%d letters, want 6", len(letters))
	}

	for i, l := range slices.Backward(letters) {
		one := deadletter.Settlement{Place: l.Place, Topic: "in", Message: l.Again()}
		if err := d.Settle(t.Context(), "graves", []deadletter.Settlement{one}); err != nil {
			t.Fatal(err)
		}

		left := read(t, d, "graves", false)
		if len(left) != i {
			t.Fatalf("%d letters are left, want %d", len(left), i)
		}

		if slices.ContainsFunc(left, func(other *deadletter.Letter) bool { return other.Place == l.Place }) {
			t.Errorf("%s is settled and shown", l.Place)
		}
	}

	for _, l := range read(t, d, "graves", true) {
		if !l.Settled {
			t.Errorf("%s is not settled", l.Place)
		}
	}

	replayed := read(t, d, "in", false)
	if len(replayed) != 6 {
		t.Fatalf("%d messages were published, want 6", len(replayed))
	}

	for i, m := range replayed {
		if _, dead := consumer.CauseOf(m.Props); dead || m.ID != letters[5-i].Props[consumer.PropOriginID] || m.Replays() != 1 {
			t.Errorf("published was %+v", m)
		}
	}
}

func TestNothingIsSettledThatIsNotPublished(t *testing.T) {
	t.Parallel()

	d, publisher := setup(t)
	publisher.refuse = true
	l := read(t, d, "graves", false)[0]
	one := []deadletter.Settlement{{Place: l.Place, Topic: "in", Message: l.Again()}}

	if err := d.Settle(t.Context(), "graves", one); !errors.Is(err, errRefused) {
		t.Errorf("settling failed with %v", err)
	}

	if left := read(t, d, "graves", false); len(left) != 6 {
		t.Errorf("%d letters are left, want 6", len(left))
	}
}

func TestTopicsOfDeadLettersAreKnown(t *testing.T) {
	t.Parallel()

	d, _ := setup(t)

	for topic, want := range map[string]bool{"graves": true, "in": false, "%DLQ%g": true} {
		if got, err := d.Holds(t.Context(), topic); err != nil || got != want {
			t.Errorf("%s: %t, %v", topic, got, err)
		}
	}
}

func TestAReadGoesOnFromAPlace(t *testing.T) {
	t.Parallel()

	d, _ := setup(t)
	letters := read(t, d, "graves", false)

	for i := range letters {
		var rest []deadletter.Place

		q := deadletter.Query{Topic: "graves", From: &letters[i].Place}

		err := d.DeadLetters(t.Context(), q, func(l *deadletter.Letter) error {
			rest = append(rest, l.Place)

			return nil
		})
		if err != nil || len(rest) != len(letters)-i || rest[0] != letters[i].Place {
			t.Errorf("from %s there are %v, %v", letters[i].Place, rest, err)
		}
	}
}

func FuzzParsePlace(f *testing.F) {
	for _, text := range []string{"graves/0/12", "%DLQ%g@b-1/3/0", "a/b", "a/-1/2", "@/0/0", "a@b@c/0/1", "/0/0"} {
		f.Add(text)
	}

	f.Fuzz(func(t *testing.T, text string) {
		p, ok := deadletter.ParsePlace(text)
		if !ok {
			return
		}

		if again, ok := deadletter.ParsePlace(p.String()); !ok || again != p {
			t.Errorf("%q is read as %+v and then as %+v", text, p, again)
		}
	})
}
