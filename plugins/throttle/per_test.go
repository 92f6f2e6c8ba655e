package throttle_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

// waits returns how long messages of these keys wait, one after the other.
func waits(tb testing.TB, lane pipeline.Transform, keys ...string) string {
	tb.Helper()

	all := make([]string, len(keys))

	for i, key := range keys {
		begin := time.Now()
		m := &pipeline.Message{Key: key, Body: []byte(fmt.Sprintf(`{"k":%q}`, key))}

		if err := lane.Transform(tb.Context(), m, func(*pipeline.Message) error { return nil }); err != nil {
			tb.Error(err)
		}

		all[i] = time.Since(begin).Round(time.Millisecond).String()
	}

	return strings.Join(all, " ")
}

func TestEachValueHasARateOfItsOwn(t *testing.T) {
	t.Parallel()

	for _, per := range []string{"key", "body.k", `upper(key) + "x"`} {
		synctest.Test(t, func(t *testing.T) {
			lane, _ := setup(t, map[string]any{"messages": 1, "burst": "2s", "per": per}).Lane()

			got := waits(t, lane, "a", "a", "b", "a", "b", "c", "b", "", "a")
			// While a waits for a second, b gets that second, too.
			if want := "0s 0s 0s 1s 0s 0s 0s 0s 1s"; got != want {
				t.Errorf("%s: the waits are %s, want %s", per, got, want)
			}

			if counts := lane.(pipeline.Meter).Meter(); counts["waited"] != 2 || counts["passed"] != 9 || counts["forgotten"] != 0 {
				t.Errorf("%s: counted %v", per, counts)
			}
		})
	}
}

func TestLanesShareTheRateOfAValue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		limit := setup(t, map[string]any{"messages": 1, "per": "key"})
		one, _ := limit.Lane()
		two, _ := limit.Lane()

		if got := waits(t, one, "a") + " " + waits(t, two, "a", "b"); got != "0s 1s 0s" {
			t.Errorf("the waits are %s", got)
		}
	})
}

func TestOnlySoManyValuesAreKnown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lane, _ := setup(t, map[string]any{"messages": 0.1, "per": "key", "keys": 2}).Lane()
		meter, _ := lane.(pipeline.Meter)

		// b is used longest ago when c comes, so it is b that begins anew.
		if got := waits(t, lane, "a", "b", "a", "c", "a", "b"); got != "0s 0s 10s 0s 10s 0s" {
			t.Errorf("the waits are %s", got)
		}

		// Of b, ten seconds had passed when it went, and of c, ten, too.
		if got := meter.Meter()["forgotten"]; got != 0 {
			t.Errorf("%d values were forgotten early", got)
		}

		if got := waits(t, lane, "d", "e", "d"); got != "0s 0s 10s" {
			t.Errorf("the waits are %s", got)
		}

		if got := meter.Meter()["forgotten"]; got != 2 {
			t.Errorf("%d values were forgotten early, want a and b", got)
		}
	})
}

func TestWhoGivesUpGivesTheTurnOfItsValueBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lane, _ := setup(t, map[string]any{"messages": 1, "per": "key"}).Lane()

		waits(t, lane, "a", "b")

		for range 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			err := lane.Transform(ctx, &pipeline.Message{Key: "a"}, func(*pipeline.Message) error { return nil })

			cancel()

			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the error is %v", err)
			}
		}

		if got := waits(t, lane, "a", "b"); got != "990ms 0s" {
			t.Errorf("the waits are %s", got)
		}
	})
}

func TestAMessageOfNoValueIsRejected(t *testing.T) {
	t.Parallel()

	lane, _ := setup(t, map[string]any{"messages": 1, "per": "body.k"}).Lane()

	if err := lane.Transform(t.Context(), pipelinetest.Message("no JSON"), nil); !pipeline.IsRejected(err) {
		t.Errorf("the error is %v", err)
	}
}
