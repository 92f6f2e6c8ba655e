package consumer_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func run(from, to pipeline.Offset) consumer.Run { return consumer.Run{From: from, To: to} }

func admit(t *testing.T, w *consumer.Window, r consumer.Run) {
	t.Helper()

	if err := w.Admit(r, 10*r.Len()); err != nil {
		t.Fatalf("Admit(%v): %v", r, err)
	}
}

func done(t *testing.T, w *consumer.Window, r consumer.Run) {
	t.Helper()

	if err := w.Done(r, 10*r.Len()); err != nil {
		t.Fatalf("Done(%v): %v", r, err)
	}
}

func wantCheckpoint(t *testing.T, w *consumer.Window, next pipeline.Offset, runs ...consumer.Run) {
	t.Helper()

	c := w.Checkpoint()
	if c.Next != next || !slices.Equal(c.Done, runs) {
		t.Fatalf("checkpoint %v, want next %d done %v", c, next, runs)
	}

	if err := c.Validate(); err != nil {
		t.Fatalf("the window's own checkpoint: %v", err)
	}
}

func TestMinMovesOverTheFinishedPrefixOnly(t *testing.T) {
	t.Parallel()

	w := consumer.NewWindow(consumer.Limits{}, consumer.Checkpoint{Next: 100})
	wantCheckpoint(t, w, 100)

	admit(t, w, run(100, 400))
	done(t, w, run(101, 200))
	wantCheckpoint(t, w, 100, run(101, 200))
	done(t, w, run(300, 400))
	wantCheckpoint(t, w, 100, run(101, 200), run(300, 400))
	done(t, w, run(100, 101))
	wantCheckpoint(t, w, 200, run(300, 400))

	if n, bytes := w.InFlight(); n != 100 || bytes != 1000 {
		t.Fatalf("in flight %d messages, %d bytes; want 100, 1000", n, bytes)
	}

	if w.IsInFlight(199) || !w.IsInFlight(200) || !w.IsInFlight(299) || w.IsInFlight(300) || w.IsInFlight(400) {
		t.Fatal("IsInFlight is wrong about the edges of 200 to 300")
	}

	done(t, w, run(200, 300))
	wantCheckpoint(t, w, 400)
}

func TestGapsCountAsFinished(t *testing.T) {
	t.Parallel()

	const million = 1_000_000

	w := consumer.NewWindow(consumer.Limits{}, consumer.Checkpoint{})
	admit(t, w, run(million, million+2)) // head gap, nothing in flight: no span is used up
	admit(t, w, run(million+3, million+4))
	wantCheckpoint(t, w, million, run(million+2, million+3))

	w.Advance(9 * million) // tail gap, while messages are in flight
	w.Advance(5)           // lower: nothing
	wantCheckpoint(t, w, million, run(million+2, million+3), run(million+4, 9*million))

	if w.IsInFlight(million + 1<<16) {
		t.Fatal("an offset one round of the ring ahead looks in flight")
	}

	if err := w.Admit(run(9*million, 9*million+1), 0); !errors.Is(err, consumer.ErrSpan) {
		t.Fatalf("Admit past the span: %v, want ErrSpan", err)
	}

	done(t, w, run(million, million+2))
	done(t, w, run(million+3, million+4))
	wantCheckpoint(t, w, 9*million)
	w.Advance(10 * million)
	wantCheckpoint(t, w, 10*million)
}

func TestAFullRingKeepsItsEndsApart(t *testing.T) {
	t.Parallel()

	const span = 64 // the size of the smallest ring, so that offset 64 has the bit of offset 0

	w := consumer.NewWindow(consumer.Limits{Span: span}, consumer.Checkpoint{})
	admit(t, w, run(0, span))
	done(t, w, run(1, 60))
	w.Advance(70)
	wantCheckpoint(t, w, 0, run(1, 60), run(span, 70))
	done(t, w, run(0, 1))
	wantCheckpoint(t, w, 60, run(span, 70))
}

func TestRestoredRunsAreFinished(t *testing.T) {
	t.Parallel()

	start := consumer.Checkpoint{Next: 10, Done: []consumer.Run{run(12, 14), run(20, 30), run(200_000, 200_010)}}
	w := consumer.NewWindow(consumer.Limits{Span: 100}, start)
	wantCheckpoint(t, w, 10, start.Done...)

	if err := w.Admit(run(10, 13), 0); !errors.Is(err, consumer.ErrFinished) {
		t.Fatalf("Admit over a restored run: %v, want ErrFinished", err)
	}

	admit(t, w, run(10, 12))

	if w.Next() != 14 {
		t.Fatalf("next %d, want 14, behind the restored run", w.Next())
	}

	admit(t, w, run(30, 31)) // 14 to 20 never arrive
	wantCheckpoint(t, w, 10, run(12, 30), run(200_000, 200_010))
	done(t, w, run(10, 12))
	done(t, w, run(30, 31))
	wantCheckpoint(t, w, 31, run(200_000, 200_010))
	w.Advance(200_005)
	wantCheckpoint(t, w, 200_010)
}

func TestWindowRefusesAndStaysAsItWas(t *testing.T) {
	t.Parallel()

	w := consumer.NewWindow(consumer.Limits{Span: 100}, consumer.Checkpoint{
		Next: 10, Done: []consumer.Run{run(60, 70)},
	})
	admit(t, w, run(10, 20))
	admit(t, w, run(30, 40))
	done(t, w, run(15, 16))

	for name, c := range map[string]struct {
		call func() error
		want error
	}{
		"admit empty":          {func() error { return w.Admit(run(50, 50), 1) }, consumer.ErrEmptyRun},
		"admit backwards":      {func() error { return w.Admit(run(50, 45), 1) }, consumer.ErrEmptyRun},
		"admit below next":     {func() error { return w.Admit(run(39, 41), 1) }, consumer.ErrPassed},
		"admit restored":       {func() error { return w.Admit(run(69, 71), 1) }, consumer.ErrFinished},
		"admit past the span":  {func() error { return w.Admit(run(109, 111), 1) }, consumer.ErrSpan},
		"done empty":           {func() error { return w.Done(run(12, 12), 1) }, consumer.ErrEmptyRun},
		"done below min":       {func() error { return w.Done(run(9, 11), 1) }, consumer.ErrNotInFlight},
		"done twice":           {func() error { return w.Done(run(14, 17), 1) }, consumer.ErrNotInFlight},
		"done of a gap":        {func() error { return w.Done(run(19, 21), 1) }, consumer.ErrNotInFlight},
		"done beyond next":     {func() error { return w.Done(run(39, 41), 1) }, consumer.ErrNotInFlight},
		"done a round further": {func() error { return w.Done(run(138, 139), 1) }, consumer.ErrNotInFlight},
	} {
		if err := c.call(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}

		if n, bytes := w.InFlight(); n != 19 || bytes != 190 || w.Next() != 40 {
			t.Fatalf("%s changed the window: %d messages, %d bytes, next %d", name, n, bytes, w.Next())
		}

		wantCheckpoint(t, w, 10, run(15, 16), run(20, 30), run(60, 70))
	}

	admit(t, w, run(70, 110)) // exactly the span
}

// The path of every message: what a puller and a lane of batches of 256 make the window do.
func cycle(w *consumer.Window, batch, gap int) error {
	const depth = 4096

	at := w.Next() + pipeline.Offset(gap)
	if err := w.Admit(run(at, at+pipeline.Offset(batch)), int64(batch)); err != nil {
		return err
	}

	if n, _ := w.InFlight(); n < depth {
		return nil
	}

	// The second oldest batch is finished before the oldest: half of all calls leave a hole.
	low := w.Min()
	first, second := low, low+pipeline.Offset(batch+gap)

	for _, from := range []pipeline.Offset{second, first} {
		if err := w.Done(run(from, from+pipeline.Offset(batch)), int64(batch)); err != nil {
			return err
		}
	}

	return nil
}

func TestWindowDoesNotAllocate(t *testing.T) {
	w := consumer.NewWindow(consumer.Limits{}, consumer.Checkpoint{})

	if n := testing.AllocsPerRun(1000, func() {
		if err := cycle(w, 256, 3); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Fatalf("%v allocations a batch, want 0", n)
	}
}

func BenchmarkWindow(b *testing.B) {
	for name, batch := range map[string]int{"one": 1, "run256": 256} {
		b.Run(name, func(b *testing.B) {
			w := consumer.NewWindow(consumer.Limits{}, consumer.Checkpoint{})

			b.ReportAllocs()

			messages := 0
			for b.Loop() {
				if err := cycle(w, batch, 0); err != nil {
					b.Fatal(err)
				}

				messages += batch
			}

			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(messages), "ns/message")
		})
	}
}
