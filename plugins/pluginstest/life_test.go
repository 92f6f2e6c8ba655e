package pluginstest

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// odd is a plugin whose life has bugs.
type odd struct {
	decent

	opened  bool
	onOpen  error
	onClose error
	closes  int
	most    int
	counts  map[string]int64
}

func (o *odd) Open(context.Context) error {
	o.opened = true

	return o.onOpen
}

func (o *odd) Close() error {
	o.closes++
	if !o.opened || o.closes > o.most {
		panic("closed")
	}

	return o.onClose
}

func (o *odd) Meter() map[string]int64 { return o.counts }

func TestWrongLivesAreReported(t *testing.T) {
	t.Parallel()

	no := errors.New("no")

	for _, test := range []struct {
		check, words string
		odd          odd
	}{
		{checksOutcome, "Open: no", odd{onOpen: no}},
		{checksOutcome, "Close: no", odd{onClose: no, most: 9}},
		{"can be closed at any time and twice", "Close before Open panicked", odd{most: 9}},
		{"can be closed at any time and twice", "Close after Close panicked", odd{opened: true, most: 1}},
		{"counts what it says", `counts ["x"] and says that it counts ["a" "b"]`, odd{opened: true, most: 9, counts: map[string]int64{"x": 1}}},
		{"counts what it says", "a is -1", odd{opened: true, most: 9, counts: map[string]int64{"a": -1, "b": 0}}},
	} {
		s := subject(func() any {
			o := test.odd

			return &o
		})
		s.Metrics = []string{"b", "a"}

		check := named(t, test.check)
		if got := note(t, func(tb testing.TB) { check(tb, s) }); !strings.Contains(got, test.words) {
			t.Errorf("reported %.500q, want something with %q", got, test.words)
		}
	}

	s := subject(func() any { return &decent{} })
	s.Metrics = []string{"a"}

	check := named(t, "counts what it says")
	if got := note(t, func(tb testing.TB) { check(tb, s) }); !strings.Contains(got, "but counts nothing") {
		t.Errorf("reported %q", got)
	}

	s.New = func(testing.TB) any { return 5 }

	if got := note(t, func(tb testing.TB) { checkOutcome(tb, s) }); !strings.Contains(got, "int is no plugin") {
		t.Errorf("reported %q", got)
	}
}
