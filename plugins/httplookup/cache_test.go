package httplookup_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/httplookup"
)

func TestAnAnswerIsRememberedForAWhile(t *testing.T) {
	t.Parallel()

	const found, none = "found", "none"

	for _, c := range []struct {
		cache any
		key   string
		after time.Duration
		asked int
	}{
		{nil, found, 0, 2},
		{"10m", found, 10*time.Minute - 1, 1},
		{"10m", found, 10 * time.Minute, 2},
		{"10m", none, 0, 2},
		{map[string]any{"for": "10m", "missing": "1m"}, none, time.Minute - 1, 1},
		{map[string]any{"for": "10m", "missing": "1m"}, none, time.Minute, 2},
		{map[string]any{"missing": "1m"}, none, 0, 1},
		{map[string]any{"missing": "1m"}, found, 0, 2},
	} {
		options := map[string]any{"missing": "pass"}
		if c.cache != nil {
			options["cache"] = c.cache
		}

		w := setup(t, options, func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/"+none {
				w.WriteHeader(http.StatusNotFound)
			} else {
				_, _ = io.WriteString(w, "1")
			}
		})
		first, second := w.lane(t), w.lane(t)

		_, err := pass(t.Context(), first, c.key, `{}`)
		w.clock.forward(c.after)

		_, again := pass(t.Context(), second, c.key, `{}`)
		if asked := len(w.requests()); errors.Join(err, again) != nil || asked != c.asked {
			t.Errorf("%v, %s after %v: asked %d times, want %d; %v, %v", c.cache, c.key, c.after, asked, c.asked, err, again)
		}

		if got := second.Meter()["remembered"]; got != int64(2-c.asked) {
			t.Errorf("%v, %s: %d answers came out of the cache", c.cache, c.key, got)
		}
	}
}

func TestRequestsThatDifferAreNotTakenForEachOther(t *testing.T) {
	t.Parallel()

	w := setup(t, map[string]any{
		"url": "/{key}", "headers": map[string]any{"x-a": "{body.a}"}, "method": "POST", "body": "body.b", "cache": "1h",
	}, says("1"))
	lane := w.lane(t)
	bodies := []string{`{"a":"1","b":"1"}`, `{"a":"2","b":"1"}`, `{"a":"1","b":"2"}`}

	for range 2 {
		for _, key := range []string{"k", "l"} {
			for _, body := range bodies {
				if _, err := pass(t.Context(), lane, key, body); err != nil {
					t.Error(err)
				}
			}
		}
	}

	if got := lane.Meter(); got["requests"] != 6 || got["remembered"] != 6 {
		t.Errorf("counted %v", got)
	}
}

func TestFailuresAreNotRemembered(t *testing.T) {
	t.Parallel()

	for code, body := range map[int]string{500: "", 403: "", 200: "no JSON"} {
		w := setup(t, map[string]any{"cache": map[string]any{"for": "1h", "missing": "1h"}},
			func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(code)
				_, _ = io.WriteString(w, body)
			})
		lane := w.lane(t)

		for range 2 {
			if _, err := pass(t.Context(), lane, "k", `{}`); err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("%d: %v", code, err)
			}
		}

		if got := len(w.requests()); got != 2 {
			t.Errorf("%d: asked %d times", code, got)
		}
	}
}

func TestTheCacheIsBounded(t *testing.T) {
	t.Parallel()

	w := setup(t, map[string]any{"cache": map[string]any{"for": "1h", "size": "8KiB"}}, func(w http.ResponseWriter, r *http.Request) {
		size := 1000
		if r.URL.Path == "/huge" {
			size = 9000
		}

		_, _ = fmt.Fprintf(w, "%q", strings.Repeat("x", size))
	})
	lane := w.lane(t)

	// Of entries of 1.2 kB and some, six have room. What was asked for longest goes; what has no room at all drives out nothing.
	for _, key := range []string{"a", "b", "c", "d", "e", "f", "a", "huge", "g", "a", "c", "b", "huge"} {
		if _, err := pass(t.Context(), lane, key, `{}`); err != nil {
			t.Error(err)
		}
	}

	want := []string{"a", "b", "c", "d", "e", "f", "huge", "g", "b", "huge"}
	for i := range want {
		want[i] = "GET /" + want[i] + " "
	}

	if got := w.requests(); !slices.Equal(got, want) {
		t.Errorf("asked %q, want %q", got, want)
	}
}

// gate is a server that lets nobody go before it is told to.
type gate struct {
	arrived chan struct{}
	open    chan int // statuses
}

func newGate() *gate { return &gate{arrived: make(chan struct{}, 8), open: make(chan int)} }

func (g *gate) answer(w http.ResponseWriter, r *http.Request) {
	g.arrived <- struct{}{}

	select {
	case code := <-g.open:
		w.WriteHeader(code)
		_, _ = io.WriteString(w, "1")
	case <-r.Context().Done():
	}
}

func TestLanesThatWantTheSameAskOnce(t *testing.T) {
	t.Parallel()

	for code, fails := range map[int]bool{200: false, 500: true} {
		g := newGate()
		w := setup(t, map[string]any{"cache": "1h"}, g.answer)

		var (
			all  sync.WaitGroup
			errs = make(chan error, 8)
		)

		first := w.lane(t)

		all.Go(func() { _, err := pass(t.Context(), first, "k", `{}`); errs <- err })
		<-g.arrived // from now on the call is under way

		others := make([]*httplookup.Transform, 3)
		for i := range others {
			others[i] = w.lane(t)
			ctx := &waiting{Context: t.Context(), asked: make(chan struct{})}

			all.Go(func() {
				_, err := pass(ctx, others[i], "k", `{}`)
				errs <- err
			})

			<-ctx.asked
		}

		g.open <- code

		all.Wait()
		close(errs)

		for err := range errs {
			if (err != nil) != fails || pipeline.IsRejected(err) {
				t.Errorf("%d: %v", code, err)
			}
		}

		if got := len(w.requests()); got != 1 {
			t.Errorf("%d: asked %d times", code, got)
		}

		for _, lane := range others {
			if got := lane.Meter(); got["shared"] != 1 || got["requests"] != 0 {
				t.Errorf("%d: counted %v", code, got)
			}
		}
	}
}

// waiting is a context that tells when somebody waits for its end.
type waiting struct {
	context.Context //nolint:containedctx // it is one

	once  sync.Once
	asked chan struct{}
}

func (w *waiting) Done() <-chan struct{} {
	w.once.Do(func() { close(w.asked) })

	return w.Context.Done()
}

func TestALaneThatGivesUpLeavesTheRequestToOthers(t *testing.T) {
	t.Parallel()

	g := newGate()
	w := setup(t, map[string]any{"cache": "1h"}, g.answer)
	first, second, third := w.lane(t), w.lane(t), w.lane(t)

	leaving, leave := context.WithCancel(t.Context())
	impatient, lose := context.WithCancel(t.Context())
	patience := &waiting{Context: impatient, asked: make(chan struct{})}
	patient := &waiting{Context: t.Context(), asked: make(chan struct{})}
	results := make([]error, 3)

	var gone, stays sync.WaitGroup

	gone.Go(func() { _, results[0] = pass(leaving, first, "k", `{}`) })
	<-g.arrived
	gone.Go(func() { _, results[1] = pass(patience, second, "k", `{}`) })
	stays.Go(func() { _, results[2] = pass(patient, third, "k", `{}`) })
	<-patience.asked
	<-patient.asked

	lose() // who waits for another lane heeds its own end
	leave()
	gone.Wait()
	<-g.arrived // the one that is left asks

	g.open <- http.StatusOK

	stays.Wait()

	if !errors.Is(results[0], context.Canceled) || !errors.Is(results[1], context.Canceled) || results[2] != nil {
		t.Errorf("the errors are %v", results)
	}

	if got := third.Meter(); got["requests"] != 1 || got["found"] != 1 {
		t.Errorf("counted %v", got)
	}
}
