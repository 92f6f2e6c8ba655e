package sample_test

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/sample"
)

func setup(tb testing.TB, options any) *sample.Transform {
	tb.Helper()

	var o sample.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	transform, err := sample.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return transform
}

func keyed(key string) *pipeline.Message {
	m := pipelinetest.Message("{}")
	m.Key = key

	return m
}

func TestTheSampleIsATransform(t *testing.T) {
	t.Parallel()

	for _, share := range []float64{0, 1} {
		c := pipelinetest.Case{Name: "any", In: pipelinetest.Message("x")}
		if share == 1 {
			c.Want = []*pipeline.Message{pipelinetest.Message("x")}
		}

		pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, share), nil }, c)
	}
}

// TestTheShareIsWhatPasses allows six standard deviations, which chance exceeds about once in 500 million runs.
func TestTheShareIsWhatPasses(t *testing.T) {
	t.Parallel()

	const n = 20_000

	for _, by := range []string{"", "key"} {
		for _, share := range []float64{0.01, 0.5, 0.9} {
			options := map[string]any{"share": share}
			if by != "" {
				options["by"] = by
			}

			var next pipelinetest.Recorder

			transform := setup(t, options)

			for i := range n {
				if err := transform.Transform(t.Context(), keyed(strconv.Itoa(i)), next.Emit); err != nil {
					t.Fatal(err)
				}
			}

			want, room := n*share, 6*math.Sqrt(n*share*(1-share))
			if got := float64(len(next.Messages)); math.Abs(got-want) > room {
				t.Errorf("by %q, share %v: %v of %d passed", by, share, got, n)
			}

			if c := transform.Meter(); c["passed"] != int64(len(next.Messages)) || c["passed"]+c["filtered"] != n {
				t.Errorf("counted %v", c)
			}
		}
	}
}

func TestMessagesOfAKeyPassTogetherInEveryProcess(t *testing.T) {
	t.Parallel()

	var passed strings.Builder

	for i := range 10 {
		before := passed.Len()

		for range 3 { // each stands for a process of its own
			var next pipelinetest.Recorder

			err := setup(t, map[string]any{"share": 0.5, "by": "key"}).Transform(t.Context(), keyed(strconv.Itoa(i)), next.Emit)
			if err != nil {
				t.Fatal(err)
			}

			if len(next.Messages) == 1 {
				passed.WriteString(strconv.Itoa(i))
			}
		}

		if n := passed.Len() - before; n != 0 && n != 3 {
			t.Errorf("key %d passed %d times of 3", i, n)
		}
	}

	// Written down: whoever changes the hash changes what users see of their data.
	if want := "111555888999"; passed.String() != want {
		t.Errorf("passed %s, want %s", passed.String(), want)
	}
}

func TestWrongSharesAreRefused(t *testing.T) {
	t.Parallel()

	for _, share := range []float64{-0.1, 1.5, math.NaN()} {
		if _, err := sample.New(sample.Options{Share: share}); err == nil {
			t.Errorf("%v is taken", share)
		}
	}

	for _, options := range []any{nil, 50, map[string]any{"share": 1, "by": "body.mag"}} {
		if err := plugins.Decode(options, &sample.Options{}); err == nil {
			t.Errorf("%v is taken", options)
		}
	}
}

func ExampleTransform() {
	all, err := sample.New(sample.Options{Share: 1})
	if err != nil {
		fmt.Println(err)

		return
	}

	err = all.Transform(context.Background(), &pipeline.Message{Key: "us1000chhc"}, func(m *pipeline.Message) error {
		fmt.Println(m.Key, "passes")

		return nil
	})
	fmt.Println(all.Meter(), err)
	// Output:
	// us1000chhc passes
	// map[filtered:0 passed:1] <nil>
}
