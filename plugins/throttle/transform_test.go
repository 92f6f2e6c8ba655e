package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/throttle"
)

func setup(tb testing.TB, options any) *throttle.Limit {
	tb.Helper()

	var o throttle.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	limit, err := throttle.New(o, nil)
	if err != nil {
		tb.Fatal(err)
	}

	return limit
}

// pass sends n messages of a size through a lane of its own.
func pass(tb testing.TB, limit *throttle.Limit, n, size int) pipeline.Transform {
	tb.Helper()

	transform, err := limit.Lane()
	if err != nil {
		tb.Fatal(err)
	}

	for range n {
		m := &pipeline.Message{Body: []byte(strings.Repeat("x", size))}
		if err := transform.Transform(tb.Context(), m, func(*pipeline.Message) error { return nil }); err != nil {
			tb.Error(err)
		}
	}

	return transform
}

func TestTheThrottleIsATransform(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, 1e6).Lane() },
		pipelinetest.Case{Name: "any", In: pipelinetest.Message("x"), Want: []*pipeline.Message{pipelinetest.Message("x")}})
}

func TestTheRateIsKept(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		name    string
		options any
		n, size int
		want    time.Duration
	}{
		{"messages", 10, 10, 1, 0},
		{"more messages than a burst", 10, 30, 1, 2 * time.Second},
		{"no burst to speak of", map[string]any{"messages": 10, "burst": "1ms"}, 11, 1, time.Second},
		{"seldom", map[string]any{"messages": 0.1}, 3, 1, 20 * time.Second},
		{"bytes", map[string]any{"bytes": 1000}, 10, 100, 0},
		{"more bytes than a burst", map[string]any{"bytes": 1000}, 30, 100, 2 * time.Second},
		{"messages larger than a burst", map[string]any{"bytes": 100}, 3, 1000, 20 * time.Second},
		{"both, bytes are the limit", map[string]any{"messages": 1000, "bytes": 1000}, 30, 100, 2 * time.Second},
		{"both, messages are the limit", map[string]any{"messages": 10, "bytes": "1MB"}, 30, 100, 2 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				limit, start := setup(t, test.options), time.Now()

				transform := pass(t, limit, test.n, test.size)

				got := time.Since(start)
				if math.Abs(float64(got-test.want)) > float64(5*time.Millisecond) {
					t.Errorf("%d messages took %s, want %s", test.n, got, test.want)
				}

				c := transform.(pipeline.Meter).Meter()
				if c["passed"] != int64(test.n) || c["waited_ms"] != got.Milliseconds() || (c["waited"] > 0) != (got > 0) {
					t.Errorf("counted %v in %s", c, got)
				}
			})
		})
	}
}

func TestLanesShareTheRate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit, start := setup(t, 10), time.Now()

		var all sync.WaitGroup
		for range 4 {
			all.Go(func() { pass(t, limit, 10, 1) })
		}

		all.Wait()

		if got := time.Since(start).Round(time.Millisecond); got != 3*time.Second {
			t.Errorf("40 messages took %s, want 3 s after a burst of 10", got)
		}
	})
}

func TestWhoGivesUpGivesItsTurnBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit, start := setup(t, 1), time.Now()
		transform := pass(t, limit, 1, 1)

		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			err := transform.Transform(ctx, pipelinetest.Message("x"), func(*pipeline.Message) error {
				t.Error("passed before its turn")

				return nil
			})

			cancel()

			if !errors.Is(err, context.DeadlineExceeded) || pipeline.IsRejected(err) {
				t.Errorf("the error is %v", err)
			}
		}

		pass(t, limit, 1, 1)

		if got := time.Since(start); got != time.Second {
			t.Errorf("the second message passed after %s, want 1 s", got)
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for _, options := range []any{
		nil, 0, -1, 1e-9, map[string]any{"bytes": 0}, map[string]any{"messages": 1, "burst": "x"},
	} {
		if err := plugins.Decode(options, &throttle.Options{}); err == nil {
			t.Errorf("%v is taken", options)
		}
	}

	for _, o := range []throttle.Options{{}, {Messages: math.NaN()}, {Messages: math.Inf(1)}, {Messages: 1, Burst: -1}} {
		if _, err := throttle.New(o, nil); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func ExampleLimit() {
	limit, err := throttle.New(throttle.Options{Messages: 100, Bytes: 1 << 20}, nil)
	if err != nil {
		fmt.Println(err)

		return
	}

	transform, _ := limit.Lane() // once for each lane, as Stage.New

	err = transform.Transform(context.Background(), &pipeline.Message{Key: "us1000chhc"}, func(m *pipeline.Message) error {
		fmt.Println(m.Key)

		return nil
	})
	fmt.Println(err)
	// Output:
	// us1000chhc
	// <nil>
}
