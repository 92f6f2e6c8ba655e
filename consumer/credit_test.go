package consumer_test

import (
	"errors"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestLimitsHaveDefaultsAndBounds(t *testing.T) {
	t.Parallel()

	if l := (consumer.Limits{}).OrDefaults(); l != (consumer.Limits{Messages: 4096, Bytes: 64 << 20, Span: 65536}) {
		t.Fatalf("defaults %+v", l)
	}

	set := consumer.Limits{Messages: 1, Bytes: 2, Span: 3}
	if l := set.OrDefaults(); l != set {
		t.Fatalf("%+v became %+v", set, l)
	}

	for name, l := range map[string]consumer.Limits{
		"Messages": {Messages: -1},
		"Bytes":    {Bytes: -1},
		"Span":     {Span: consumer.MaxSpan + 1},
	} {
		var wrong *consumer.LimitError
		if err := l.Validate(); !errors.As(err, &wrong) || wrong.Name != name {
			t.Errorf("%+v: %v, want a LimitError of %s", l, err, name)
		}
	}

	if err := (consumer.Limits{Messages: math.MaxInt, Bytes: math.MaxInt64, Span: consumer.MaxSpan}).Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestCreditEndsAtEachLimit(t *testing.T) {
	t.Parallel()

	const start = 1000

	limits := consumer.Limits{Messages: 4, Bytes: 100, Span: 10}

	for name, c := range map[string]struct {
		n      int
		bytes  int64 // in flight before
		offset pipeline.Offset
		size   int64
		room   int
		fits   bool
	}{
		"empty":                   {0, 0, start, 1, 4, true},
		"empty, oversize":         {0, 0, start, 1000, 4, true},
		"empty, far gap":          {0, 0, 9 * start, 1, 4, true},
		"last message":            {3, 30, start + 3, 70, 1, true},
		"one message too many":    {4, 40, start + 4, 1, 0, false},
		"one byte too many":       {3, 30, start + 3, 71, 1, false},
		"oversize, not alone":     {1, 1, start + 1, 1000, 3, false},
		"behind an oversize one":  {1, 1000, start + 1, 0, 0, false},
		"bytes used up":           {2, 100, start + 2, 0, 0, true},
		"last offset of the span": {1, 1, start + 9, 1, 3, true},
		"past the span":           {1, 1, start + 10, 1, 3, false},
	} {
		credit := consumer.NewCredit(limits, start)
		credit.Take(c.n, c.bytes)

		if room := credit.Room(); room.Messages != c.room || room.Messages > 0 && room.Bytes != 100-c.bytes {
			t.Errorf("%s: room %+v, want %d messages", name, room, c.room)
		}

		if credit.Fits(c.offset, c.size) != c.fits {
			t.Errorf("%s: fits %v, want %v", name, !c.fits, c.fits)
		}

		credit.Give(c.n, c.bytes, start+500)

		if credit.Room().Messages != 4 || !credit.Fits(start+509, 1) {
			t.Errorf("%s: not all is given back", name)
		}
	}
}

func TestRefundIsDueInQuartersOrWhenIdle(t *testing.T) {
	t.Parallel()

	limits := consumer.Limits{Messages: 40, Bytes: 400, Span: 4000}

	for name, c := range map[string]struct {
		n        int
		bytes    int64
		low      pipeline.Offset
		inFlight int
		due      bool
	}{
		"nothing":                 {0, 0, 50, 0, false},
		"nothing, busy":           {0, 0, 50, 9, false},
		"little, busy":            {9, 99, 1049, 1, false},
		"little, idle":            {1, 0, 50, 0, true},
		"only Min moved, idle":    {0, 0, 51, 0, true},
		"a quarter of the count":  {10, 0, 50, 1, true},
		"a quarter of the bytes":  {1, 100, 50, 1, true},
		"a quarter of the span":   {1, 0, 1050, 1, true},
		"oversize message behind": {1, 99999, 50, 1, true},
	} {
		refund := consumer.NewRefund(50)
		refund.Add(c.n, c.bytes, c.low)

		if refund.Due(limits, c.inFlight) != c.due {
			t.Errorf("%s: due %v, want %v", name, !c.due, c.due)
		}

		if n, bytes, low := refund.Take(); n != c.n || bytes != c.bytes || low != c.low {
			t.Errorf("%s: took %d, %d, %d", name, n, bytes, low)
		}

		if refund.Due(limits, 0) {
			t.Errorf("%s: due again after it was taken", name)
		}
	}
}

func TestTinyLimitsStillGiveCreditBack(t *testing.T) {
	t.Parallel()

	refund := consumer.NewRefund(0)
	tiny := consumer.Limits{Messages: 1, Bytes: 1, Span: 1}

	if refund.Due(tiny, 1) {
		t.Fatal("due with nothing to give")
	}

	refund.Add(1, 1, 1)

	if !refund.Due(tiny, 1) {
		t.Fatal("a whole window is finished and not due")
	}
}

// flow plays a puller and a tracker of one queue: the puller admits what its credit allows, messages finish in any order,
// the refund travels back whenever it is due.
type flow struct {
	limits consumer.Limits
	credit consumer.Credit
	refund consumer.Refund
	window *consumer.Window
	sizes  map[pipeline.Offset]int64 // of what is in flight
}

// take admits one message, or reports that it must wait.
func (f *flow) take(t *testing.T, o pipeline.Offset, size int64) bool {
	t.Helper()

	if !f.credit.Fits(o, size) {
		return false
	}

	f.credit.Take(1, size)

	if err := f.window.Admit(run(o, o+1), size); err != nil {
		t.Fatalf("credit allowed what the window refuses: %v", err)
	}

	f.sizes[o] = size
	n, bytes := f.window.InFlight()

	if n > f.limits.Messages || bytes > f.limits.Bytes && n > 1 || int64(o-f.window.Min()) >= f.limits.Span {
		t.Fatalf("%d messages, %d bytes, %d to %d in flight: past %+v", n, bytes, f.window.Min(), o, f.limits)
	}

	return true
}

func (f *flow) finish(t *testing.T, o pipeline.Offset) {
	t.Helper()

	if err := f.window.Done(run(o, o+1), f.sizes[o]); err != nil {
		t.Fatal(err)
	}

	f.refund.Add(1, f.sizes[o], f.window.Min())
	delete(f.sizes, o)

	if n, _ := f.window.InFlight(); f.refund.Due(f.limits, n) {
		f.credit.Give(f.refund.Take())
	}
}

func TestCreditKeepsTheLimitsAndNeverStarves(t *testing.T) {
	t.Parallel()

	for range 200 {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		limits := consumer.Limits{Messages: 1 + rnd.IntN(40), Bytes: 1 + rnd.Int64N(500), Span: 1 + rnd.Int64N(80)}
		f := &flow{
			limits: limits, credit: consumer.NewCredit(limits, 0), refund: consumer.NewRefund(0),
			window: consumer.NewWindow(limits, consumer.Checkpoint{}), sizes: map[pipeline.Offset]int64{},
		}

		t.Logf("seed %d: %+v", seed, limits)

		next := pipeline.Offset(0)
		for range 1000 {
			next += pipeline.Offset(rnd.IntN(3) / 2 * rnd.IntN(200)) // a gap before every third message
			size := rnd.Int64N(60)

			for !f.take(t, next, size) {
				if len(f.sizes) == 0 {
					t.Fatalf("nothing is in flight and offset %d of %d bytes does not fit: %+v", next, size, f.credit)
				}

				waiting := slices.Sorted(maps.Keys(f.sizes))
				f.finish(t, waiting[rnd.IntN(len(waiting))])
			}

			next++
		}
	}
}
