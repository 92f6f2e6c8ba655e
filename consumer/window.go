package consumer

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/millrace/millrace/pipeline"
)

// Errors of a [Window]. Each is a mistake of the caller, not of a broker; the window is as it was before the call.
var (
	// ErrPassed is returned by Admit for offsets below Next, which were admitted before or skipped for good.
	ErrPassed = errors.New("consumer: offset was passed before")
	// ErrEmptyRun is returned by Admit and Done for a run without offsets.
	ErrEmptyRun = errors.New("consumer: empty run")
	// ErrFinished is returned by Admit for a run with an offset that the checkpoint restored as finished.
	ErrFinished = errors.New("consumer: offset is finished already")
	// ErrSpan is returned by Admit when the offsets from Min to the end of the run are more than the window's span.
	ErrSpan = errors.New("consumer: past the span of the window")
	// ErrNotInFlight is returned by Done for a run with an offset that is not in flight.
	ErrNotInFlight = errors.New("consumer: offset is not in flight")
)

// Window keeps the books of one queue: which offsets are in flight, and up to where all are finished.
//
// It is pure: no lock, no clock, and no allocation but in NewWindow and Checkpoint. One goroutine at a time may use it.
// An offset below Next that was never admitted (filtered, compacted away, restored as finished) counts as finished.
type Window struct {
	// ring holds a bit for each offset, at the offset modulo the ring's size (a power of two, at least the span);
	// 1 is in flight. All ones are at offsets from min to below next, and the one at min is among them if there is any.
	ring []uint64
	span int64
	// min is the commit watermark, equal to next while nothing is in flight.
	min, next pipeline.Offset
	count     int
	bytes     int64
	// ahead are the runs restored as finished that next has not reached; none touches next.
	ahead []Run
}

const wordBits = 64

// NewWindow returns a window that goes on from a checkpoint: nothing is in flight, and c.Done is finished. The limits
// must be valid (see [Limits.Validate]); only their span matters here, since count and bytes are kept by [Credit].
func NewWindow(l Limits, c Checkpoint) *Window {
	span := l.OrDefaults().Span
	words := 1 << bits.Len64(uint64((span-1)/wordBits))

	w := &Window{
		ring:  make([]uint64, words),
		span:  span,
		next:  c.Next,
		ahead: JoinRuns(slices.Clone(c.Done)),
	}
	w.skipAhead()
	w.min = w.next

	return w
}

// Admit puts the offsets of r in flight, with the bytes that they hold together. Offsets from Next to r.From never
// arrive. It fails with [ErrEmptyRun], [ErrPassed], [ErrFinished] or [ErrSpan].
func (w *Window) Admit(r Run, bytes int64) error {
	if r.To <= r.From {
		return fmt.Errorf("%w: %d to %d", ErrEmptyRun, r.From, r.To)
	}

	if r.From < w.next {
		return fmt.Errorf("%w: %d is below %d", ErrPassed, r.From, w.next)
	}

	passed := 0
	for passed < len(w.ahead) && w.ahead[passed].To <= r.From {
		passed++
	}

	if passed < len(w.ahead) && w.ahead[passed].From < r.To {
		return fmt.Errorf("%w: %d", ErrFinished, max(r.From, w.ahead[passed].From))
	}

	low := w.min
	if w.count == 0 {
		low = r.From
	}

	if int64(r.To-low) > w.span {
		return fmt.Errorf("%w: %d to %d are more than %d offsets", ErrSpan, low, r.To, w.span)
	}

	w.min = low
	w.next = r.To
	w.count += int(r.Len())
	w.bytes += bytes
	w.set(r)
	w.skipAhead()

	return nil
}

// Advance says that no offset below next will be admitted any more. It changes nothing when next is below Next.
func (w *Window) Advance(next pipeline.Offset) {
	if next <= w.next {
		return
	}

	w.next = next
	w.skipAhead()

	if w.count == 0 {
		w.min = w.next
	}
}

// Done finishes the offsets of r, all of which must be in flight, with the bytes that they were admitted with. It fails
// with [ErrEmptyRun] or [ErrNotInFlight].
func (w *Window) Done(r Run, bytes int64) error {
	if r.To <= r.From {
		return fmt.Errorf("%w: %d to %d", ErrEmptyRun, r.From, r.To)
	}

	if r.From < w.min || r.To > w.next || int64(r.To-w.min) > w.span || !w.allSet(r) {
		return fmt.Errorf("%w: among %d to %d", ErrNotInFlight, r.From, r.To)
	}

	w.clear(r)
	w.count -= int(r.Len())
	w.bytes -= bytes

	switch {
	case w.count == 0:
		w.min = w.next
	case r.From == w.min:
		w.min = w.find(r.To, 0)
	}

	return nil
}

// Min returns the commit watermark: the lowest offset in flight, or Next when there is none.
func (w *Window) Min() pipeline.Offset { return w.min }

// Next returns the lowest offset that may be admitted. It never is one that was restored as finished.
func (w *Window) Next() pipeline.Offset { return w.next }

// InFlight returns how many offsets are in flight and the bytes that they hold together.
func (w *Window) InFlight() (int, int64) { return w.count, w.bytes }

// IsInFlight reports whether the offset is in flight.
func (w *Window) IsInFlight(o pipeline.Offset) bool {
	return o >= w.min && o < w.next && int64(o-w.min) < w.span && w.allSet(Run{From: o, To: o + 1})
}

// Checkpoint returns what a restart must know: Min, and all that is finished above it, also the restored runs that Next
// has not reached. It shares nothing with the window.
func (w *Window) Checkpoint() Checkpoint {
	c := Checkpoint{Next: w.min}
	at, left := w.min, w.count

	for left > 0 {
		// No run of offsets in flight is longer than what is left; without that bound a full ring would be read round its end.
		end := min(w.find(at, ^uint64(0)), at+pipeline.Offset(left))
		left -= int(end - at)
		at = w.next

		if left > 0 {
			at = w.find(end, 0)
		}

		if at > end {
			c.Done = append(c.Done, Run{From: end, To: at})
		}
	}

	c.Done = append(c.Done, w.ahead...)

	return c
}

// skipAhead moves next over the restored runs that it has reached.
func (w *Window) skipAhead() {
	for len(w.ahead) > 0 && w.ahead[0].From <= w.next {
		w.next = max(w.next, w.ahead[0].To)
		w.ahead = w.ahead[1:]
	}
}
