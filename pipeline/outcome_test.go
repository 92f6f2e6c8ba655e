package pipeline_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func TestMarksAreFoundAnywhereInAChain(t *testing.T) {
	t.Parallel()

	retry := pipeline.RetryAfter(io.ErrUnexpectedEOF, time.Second)
	reject := pipeline.Reject(io.ErrUnexpectedEOF)

	for _, test := range []struct {
		name     string
		err      error
		delay    time.Duration
		marked   bool
		rejected bool
	}{
		{"nil", nil, 0, false, false},
		{"no mark", io.ErrUnexpectedEOF, 0, false, false},
		{"retry", retry, time.Second, true, false},
		{"retry at once", pipeline.RetryAfter(io.ErrUnexpectedEOF, 0), 0, true, false},
		{"wrapped retry", fmt.Errorf("look up: %w", retry), time.Second, true, false},
		{"joined retry", errors.Join(errors.New("other"), retry), time.Second, true, false},
		{"placed retry", &pipeline.StageError{Channel: "c", Stage: "s", Err: retry}, time.Second, true, false},
		{"outermost of two retries", pipeline.RetryAfter(retry, time.Minute), time.Minute, true, false},
		{"reject", reject, 0, false, true},
		{"wrapped reject", fmt.Errorf("decode: %w", reject), 0, false, true},
		{"placed reject", &pipeline.StageError{Channel: "c", Stage: "s", Err: reject}, 0, false, true},
		{"panic with a rejection", &pipeline.PanicError{Value: reject}, 0, false, true},
		{"both", pipeline.Reject(retry), time.Second, true, true},
		{"both, the other way round", pipeline.RetryAfter(reject, time.Second), time.Second, true, true},
	} {
		if delay, marked := pipeline.RetryDelay(test.err); delay != test.delay || marked != test.marked {
			t.Errorf("%s: retry after %v, %v, want %v, %v", test.name, delay, marked, test.delay, test.marked)
		}

		if got := pipeline.IsRejected(test.err); got != test.rejected {
			t.Errorf("%s: rejected %v, want %v", test.name, got, test.rejected)
		}
	}
}

func TestMarksKeepTheError(t *testing.T) {
	t.Parallel()

	for name, marked := range map[string]error{
		"retry":  pipeline.RetryAfter(io.ErrUnexpectedEOF, time.Second),
		"reject": pipeline.Reject(io.ErrUnexpectedEOF),
	} {
		if !errors.Is(marked, io.ErrUnexpectedEOF) || marked.Error() != io.ErrUnexpectedEOF.Error() {
			t.Errorf("%s: %v does not stand for %v any more", name, marked, io.ErrUnexpectedEOF)
		}
	}
}

func TestMarksOnNoErrorAreNoError(t *testing.T) {
	t.Parallel()

	if err := pipeline.RetryAfter(nil, time.Second); err != nil {
		t.Errorf("RetryAfter(nil) is %v", err)
	}

	if err := pipeline.Reject(nil); err != nil {
		t.Errorf("Reject(nil) is %v", err)
	}
}

func TestStageErrorNamesThePlace(t *testing.T) {
	t.Parallel()

	err := &pipeline.StageError{Channel: "alerts", Stage: "enrich", Err: io.ErrUnexpectedEOF}

	if got, want := err.Error(), "alerts/enrich: unexpected EOF"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}

	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
}

func TestPanicErrorHoldsTheValue(t *testing.T) {
	t.Parallel()

	if got, want := (&pipeline.PanicError{Value: 7}).Error(), "panic: 7"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}

	if errors.Unwrap(&pipeline.PanicError{Value: 7}) != nil {
		t.Error("a number has become an error")
	}

	if !errors.Is(&pipeline.PanicError{Value: io.EOF}, io.EOF) {
		t.Error("an error that was the value of a panic is lost")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()

	at := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

	for _, test := range []struct {
		value fmt.Stringer
		want  string
	}{
		{pipeline.Ack, "ack"},
		{pipeline.Retry, "retry"},
		{pipeline.DeadLetter, "dead letter"},
		{pipeline.Verdict(9), "verdict(9)"},
		{pipeline.OrderNone, "none"},
		{pipeline.OrderByKey, "key"},
		{pipeline.OrderByQueue, "queue"},
		{pipeline.Order(9), "unknown"},
		{pipeline.Start{}, "first"},
		{pipeline.First, "first"},
		{pipeline.Last, "last"},
		{pipeline.StartAt(at), "2026-03-01T12:00:00Z"},
		{pipeline.Queue{Topic: "quakes", ID: 2}, "quakes/2"},
		{pipeline.Queue{Topic: "quakes", Broker: "broker-a", ID: 2}, "quakes@broker-a/2"},
	} {
		if got := test.value.String(); got != test.want {
			t.Errorf("%#v is called %q, want %q", test.value, got, test.want)
		}
	}
}

func TestStartIsOneOfThree(t *testing.T) {
	t.Parallel()

	moment := time.Unix(1204, 0)

	for _, test := range []struct {
		start       pipeline.Start
		first, last bool
		timed       bool
	}{
		{pipeline.Start{}, true, false, false},
		{pipeline.First, true, false, false},
		{pipeline.Last, false, true, false},
		{pipeline.StartAt(moment), false, false, true},
		{pipeline.StartAt(time.Time{}), false, false, true},
	} {
		at, timed := test.start.Time()
		if test.start.IsFirst() != test.first || test.start.IsLast() != test.last || timed != test.timed {
			t.Errorf("%s: first %v, last %v, timed %v", test.start, test.start.IsFirst(), test.start.IsLast(), timed)
		}

		if timed && test.start != pipeline.StartAt(at) {
			t.Errorf("%s gives back the time %s", test.start, at)
		}
	}

	if at, _ := pipeline.StartAt(moment).Time(); !at.Equal(moment) {
		t.Errorf("time %s, want %s", at, moment)
	}
}
