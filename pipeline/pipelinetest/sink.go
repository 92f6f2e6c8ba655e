package pipelinetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// Harness is a kind of sink under test.
type Harness struct {
	// New makes a sink over an empty store; the suite opens and closes it. Stored reads the store back: the bodies of
	// all messages in it, in any order.
	New func(tb testing.TB) (sink pipeline.Sink, stored func() []string)
	// Poison changes a message so that the sink must refuse it and nothing else of its batch; nil where no message can be
	// refused alone.
	Poison func(m *pipeline.Message)
}

// TestSink is the suite that every sink must pass. The bodies that it writes are one line of JSON each.
func TestSink(t *testing.T, h Harness) {
	t.Helper()

	for _, check := range sinkChecks() {
		t.Run(check.name, func(t *testing.T) {
			if check.name == partialFailure && h.Poison == nil {
				t.Skip("the harness says that this sink refuses no message alone")
			}

			check.run(t, h)
		})
	}
}

const partialFailure = "names the messages that it refuses, and stores the others"

type sinkCheck struct {
	name string
	run  func(tb testing.TB, h Harness)
}

func sinkChecks() []sinkCheck {
	return []sinkCheck{
		{"has stored everything when it returns nil", checkStored},
		{"stores nothing of an empty batch", checkEmptyBatch},
		{partialFailure, checkPartialFailure},
		{"claims nothing when its context has ended", checkSinkCancelled},
		{"takes batches from all lanes at once", checkConcurrent},
		{"keeps nothing of a batch", checkKeepsNothing},
		{"takes a large body", checkLarge},
		{"can be closed twice", checkSinkClose},
	}
}

func checkStored(tb testing.TB, h Harness) {
	tb.Helper()

	s := setup(tb, h)

	batch := numbered(0, 3)
	batch[0].Key, batch[1].Tag = "key", "tag"
	batch[2].SetProp("name", "value")

	before := make([]*pipeline.Message, len(batch))
	for i, m := range batch {
		before[i] = snapshot(m)
	}

	given := slices.Clone(batch)

	s.write(given)
	s.write(numbered(3, 1))
	s.holds(append(bodies(batch...), bodies(numbered(3, 1)...)...))

	for i, m := range batch {
		if given[i] != m || !same(m, before[i]) {
			tb.Errorf("Write changed message %d of its batch", i)
		}
	}
}

func checkEmptyBatch(tb testing.TB, h Harness) {
	tb.Helper()

	s := setup(tb, h)

	s.write(nil)
	s.write([]*pipeline.Message{})
	s.holds(nil)
}

func checkPartialFailure(tb testing.TB, h Harness) {
	tb.Helper()

	s := setup(tb, h)

	batch := numbered(0, 5)
	h.Poison(batch[1])
	h.Poison(batch[3])

	ok, err := s.try(tb.Context(), batch)
	if !ok {
		return
	}

	failures, ok := errors.AsType[*pipeline.BatchError](err)
	if !ok {
		tb.Errorf("messages 1 and 3 of 5 are poisoned; Write returned %v, want a *pipeline.BatchError", err)

		return
	}

	for i := range batch {
		if failed, poisoned := failures.Failed[i] != nil, i == 1 || i == 3; failed != poisoned {
			tb.Errorf("message %d: poisoned %v, failed with %v", i, poisoned, failures.Failed[i])
		}
	}

	for i := range failures.Failed {
		if i < 0 || i >= len(batch) {
			tb.Errorf("the error names message %d of %d", i, len(batch))
		}
	}

	s.holds(bodies(batch[0], batch[2], batch[4]))
}

// checkSinkCancelled lets a sink ignore its context when it stores the batch all the same.
func checkSinkCancelled(tb testing.TB, h Harness) {
	tb.Helper()

	s := setup(tb, h)
	batch := numbered(0, 3)

	ctx, cancel := context.WithCancel(tb.Context())
	cancel()

	ok, err := s.try(ctx, batch)
	if !ok {
		return
	}

	if err == nil {
		s.holds(bodies(batch...))

		return
	}

	causes := []error{err}

	if failures, ok := errors.AsType[*pipeline.BatchError](err); ok {
		causes = causes[:0]
		for _, cause := range failures.Failed {
			causes = append(causes, cause)
		}
	}

	for _, cause := range causes {
		if !errors.Is(cause, context.Canceled) || pipeline.IsRejected(cause) {
			tb.Errorf("the context has ended and Write fails with %v, want the context's error, not rejected", cause)
		}
	}
}

func checkConcurrent(tb testing.TB, h Harness) {
	tb.Helper()

	const lanes, batches, size = 8, 10, 3

	s := setup(tb, h)

	var all sync.WaitGroup
	for lane := range lanes {
		all.Go(func() {
			for b := range batches {
				s.write(numbered((lane*batches+b)*size, size))
			}
		})
	}

	all.Wait()
	s.holds(bodies(numbered(0, lanes*batches*size)...))
}

// checkKeepsNothing does to a batch what its owner may do after Write: use the bodies and the slice for something else.
func checkKeepsNothing(tb testing.TB, h Harness) {
	tb.Helper()

	s := setup(tb, h)
	batch := numbered(0, 3)
	want := bodies(batch...)

	s.write(batch)

	for _, m := range batch {
		copy(m.Body, `"!"`)
	}

	copy(batch, numbered(3, 3))
	want = append(want, bodies(batch...)...)

	s.write(batch)
	s.holds(want)
}

func checkLarge(tb testing.TB, h Harness) {
	tb.Helper()

	const size = 1 << 20

	s := setup(tb, h)
	batch := append(numbered(0, 1), Message(`"`+strings.Repeat("x", size)+`"`))

	s.write(batch)
	s.holds(bodies(batch...))
}

func checkSinkClose(tb testing.TB, h Harness) {
	tb.Helper()

	sink, _ := h.New(tb)
	if open(tb.Context(), tb, sink) {
		shut(tb, sink)
		shutTwice(tb, sink)
	}
}

// numbered returns n messages whose bodies count from first.
func numbered(first, n int) []*pipeline.Message {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"n":%d}`, first+i)
	}

	return Messages(all...)
}

func bodies(batch ...*pipeline.Message) []string {
	all := make([]string, len(batch))
	for i, m := range batch {
		all[i] = string(m.Body)
	}

	return all
}

// sinkUnderTest is an open sink over a store of its own.
type sinkUnderTest struct {
	tb     testing.TB
	sink   pipeline.Sink
	stored func() []string
}

func setup(tb testing.TB, h Harness) *sinkUnderTest {
	tb.Helper()

	s := &sinkUnderTest{tb: tb}
	s.sink, s.stored = h.New(tb)

	if !open(tb.Context(), tb, s.sink) {
		tb.FailNow()
	}

	tb.Cleanup(func() { shut(tb, s.sink) })

	return s
}

// try writes a batch and reports whether Write came back.
func (s *sinkUnderTest) try(ctx context.Context, batch []*pipeline.Message) (returned bool, err error) {
	s.tb.Helper()

	returned = bounded(s.tb, "Write", func() { err = s.sink.Write(ctx, batch) })

	return returned, err
}

// write writes a batch that must succeed.
func (s *sinkUnderTest) write(batch []*pipeline.Message) {
	s.tb.Helper()

	if ok, err := s.try(s.tb.Context(), batch); ok && err != nil {
		s.tb.Errorf("Write of %d messages: %v", len(batch), err)
	}
}

// holds compares the store with what was written.
func (s *sinkUnderTest) holds(want []string) {
	s.tb.Helper()

	counts := make(map[string]int)
	for _, body := range want {
		counts[body]++
	}

	for _, body := range s.stored() {
		counts[body]--
	}

	for body, n := range counts {
		if n != 0 {
			s.tb.Errorf("the store holds %+d of %.100q, of %d messages written", -n, body, len(want))
		}
	}
}
