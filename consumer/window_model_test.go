package consumer_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// model is a window as a plain set: what is in flight, and what the start checkpoint said is finished.
type model struct {
	span     pipeline.Offset
	next     pipeline.Offset
	inFlight map[pipeline.Offset]bool
	restored map[pipeline.Offset]bool
	bytes    int64
}

func newModel(span int64, c consumer.Checkpoint) *model {
	m := &model{
		span: pipeline.Offset(span), next: c.Next,
		inFlight: map[pipeline.Offset]bool{}, restored: map[pipeline.Offset]bool{},
	}

	for _, r := range c.Done {
		for o := r.From; o < r.To; o++ {
			m.restored[o] = true
		}
	}

	m.advance(c.Next)

	return m
}

func (m *model) advance(next pipeline.Offset) {
	m.next = max(m.next, next)
	for m.restored[m.next] {
		m.next++
	}
}

func (m *model) min() pipeline.Offset {
	if len(m.inFlight) == 0 {
		return m.next
	}

	return slices.Min(slices.Collect(maps.Keys(m.inFlight)))
}

func (m *model) admit(r consumer.Run, bytes int64) bool {
	low := m.min()
	if len(m.inFlight) == 0 {
		low = r.From
	}

	if r.To <= r.From || r.From < m.next || r.To-low > m.span {
		return false
	}

	for o := r.From; o < r.To; o++ {
		if m.restored[o] {
			return false
		}
	}

	for o := r.From; o < r.To; o++ {
		m.inFlight[o] = true
	}

	m.bytes += bytes
	m.advance(r.To)

	return true
}

func (m *model) done(r consumer.Run, bytes int64) bool {
	if r.To <= r.From {
		return false
	}

	for o := r.From; o < r.To; o++ {
		if !m.inFlight[o] {
			return false
		}
	}

	for o := r.From; o < r.To; o++ {
		delete(m.inFlight, o)
	}

	m.bytes -= bytes

	return true
}

func (m *model) checkpoint() consumer.Checkpoint {
	finished := make([]consumer.Run, 0, len(m.restored))
	for o := range m.restored {
		finished = append(finished, run(o, o+1))
	}

	low := m.min()
	for o := low; o < m.next; o++ {
		if !m.inFlight[o] {
			finished = append(finished, run(o, o+1))
		}
	}

	return consumer.Checkpoint{Next: low}.With(finished...)
}

func (m *model) compare(t *testing.T, w *consumer.Window) {
	t.Helper()

	n, bytes := w.InFlight()
	if n != len(m.inFlight) || bytes != m.bytes || w.Next() != m.next || w.Min() != m.min() {
		t.Fatalf("window: %d messages, %d bytes, min %d, next %d; model: %d, %d, %d, %d",
			n, bytes, w.Min(), w.Next(), len(m.inFlight), m.bytes, m.min(), m.next)
	}

	for o := m.min() - 3; o < m.next+3; o++ {
		if w.IsInFlight(o) != m.inFlight[o] {
			t.Fatalf("IsInFlight(%d) is %v", o, w.IsInFlight(o))
		}
	}

	got, want := w.Checkpoint(), m.checkpoint()
	if got.Next != want.Next || !slices.Equal(got.Done, want.Done) {
		t.Fatalf("checkpoint %v, want %v", got, want)
	}

	if err := got.Validate(); err != nil {
		t.Fatal(err)
	}
}

// play reads each operation from three bytes: what, where and how much.
func play(t *testing.T, span int64, start consumer.Checkpoint, program []byte) {
	t.Helper()

	limits := consumer.Limits{Span: span}
	w, m := consumer.NewWindow(limits, start), newModel(span, start)
	m.compare(t, w)

	for ; len(program) >= 3; program = program[3:] {
		op, where, size := program[0], pipeline.Offset(program[1]), pipeline.Offset(program[2])

		switch {
		case op < 96: // mostly at next, sometimes behind it or after a gap
			from := w.Next() + max(0, where-200) - max(0, 4-where)
			r := run(from, from+size%150)
			refused := w.Admit(r, int64(size)) != nil

			if admitted := m.admit(r, int64(size)); admitted == refused {
				t.Fatalf("Admit(%v) refused: %v", r, refused)
			}
		case op < 208:
			from := w.Min() + where%128 - max(0, 2-where)
			r := run(from, from+size%100)
			refused := w.Done(r, int64(size)) != nil

			if finished := m.done(r, int64(size)); finished == refused {
				t.Fatalf("Done(%v) refused: %v", r, refused)
			}
		case op < 240:
			w.Advance(w.Next() + where - 8)
			m.advance(m.next + where - 8)
		default: // a restart: what is in flight comes again, nothing else
			c := w.Checkpoint()
			w, m = consumer.NewWindow(limits, c), newModel(span, c)
		}

		m.compare(t, w)
	}
}

func FuzzWindow(f *testing.F) {
	f.Add(int64(200), int64(7), []byte{2, 3, 20, 4}, []byte{0, 9, 100, 100, 10, 9, 250, 0, 0, 0, 210, 99, 210, 40, 0})
	f.Add(int64(64), int64(0), []byte{}, []byte{0, 9, 64, 100, 0, 1, 0, 9, 1, 100, 0, 63})

	f.Fuzz(func(t *testing.T, span, next int64, gaps, program []byte) {
		if span < 1 || span > 1000 || next < 0 || next > 1<<62 || len(gaps) > 20 || len(program) > 300 {
			t.Skip("a world too big to compare offset by offset")
		}

		start := consumer.Checkpoint{Next: pipeline.Offset(next)}
		at := start.Next

		for i := 0; i+1 < len(gaps); i += 2 {
			r := run(at+pipeline.Offset(gaps[i]), at+pipeline.Offset(gaps[i])+pipeline.Offset(gaps[i+1]))
			start.Done = append(start.Done, r)
			at = r.To
		}

		play(t, span, start, program)
	})
}

// Random bytes rarely build deep states; these programs are mostly legal operations.
func TestWindowAgreesWithSetModel(t *testing.T) {
	t.Parallel()

	for range 20 {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))

		program := make([]byte, 900)
		for i := range program {
			program[i] = byte(rnd.Uint32())
		}

		span := 1 + rnd.Int64N(500)
		if rnd.IntN(2) == 0 {
			span = 64 << rnd.IntN(2) // the whole ring: its first and its last offset are neighbours
		}

		t.Logf("seed %d", seed)
		play(t, span, consumer.Checkpoint{Done: []consumer.Run{run(30, 60), run(61, 62), run(700, 900)}}, program)
	}
}
