package jq_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/jq"
)

func setup(tb testing.TB, options any) *jq.Transform {
	tb.Helper()

	var o jq.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	transform, err := jq.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return transform
}

// result is a message of the suite with another body, and another id when it is one of several.
func result(body string, number ...int) *pipeline.Message {
	m := pipelinetest.Message(body)
	for _, n := range number {
		m.ID = fmt.Sprintf("message-0/%d", n)
	}

	return m
}

func TestJqIsATransform(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) {
		return setup(t, map[string]any{"query": ".list[]", "most": 3}), nil
	},
		pipelinetest.Case{Name: "one", In: pipelinetest.Message(`{"list":[{"a":1}]}`), Want: []*pipeline.Message{result(`{"a":1}`)}},
		pipelinetest.Case{
			Name: "several", In: pipelinetest.Message(`{"list":[1,"<b>",null]}`),
			Want: []*pipeline.Message{result(`1`, 0), result(`"<b>"`, 1), result(`null`, 2)},
		},
		pipelinetest.Case{Name: "none", In: pipelinetest.Message(`{"list":[]}`)},
		pipelinetest.Case{Name: "too many", In: pipelinetest.Message(`{"list":[1,2,3,4]}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "error of the program", In: pipelinetest.Message(`{"list":1}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no JSON", In: pipelinetest.Message(`{"list"`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "more than JSON", In: pipelinetest.Message(`{"list":[]} 1`), Fails: pipeline.IsRejected},
	)
}

func TestAProgramSeesTheMessageAndNothingElse(t *testing.T) {
	t.Parallel()

	for query, want := range map[string]string{
		`[$id, $key, $tag, $topic, $props.p]`: `["message-0","k","","test","v"]`,
		`.n`:                                  `12345678901234567890.10`,
		`env, $ENV`:                           `{} {}`,
		`1, halt, 2`:                          `1`,
		`"text"`:                              `"text"`,
	} {
		m := pipelinetest.Message(`{"n":12345678901234567890.10}`)
		m.Key = "k"
		m.SetProp("p", "v")

		var next pipelinetest.Recorder
		if err := setup(t, query).Transform(t.Context(), m, next.Emit); err != nil {
			t.Errorf("%s: %v", query, err)
		}

		var got []string
		for _, m := range next.Messages {
			got = append(got, string(m.Body))
		}

		if strings.Join(got, " ") != want {
			t.Errorf("%s makes %s, want %s", query, strings.Join(got, " "), want)
		}
	}

	for _, query := range []string{`"x" | halt_error`, `error("no")`} {
		if err := setup(t, query).Transform(t.Context(), pipelinetest.Message("{}"), nil); !pipeline.IsRejected(err) {
			t.Errorf("%s: %v", query, err)
		}
	}
}

func TestRawResultsHaveNoQuotes(t *testing.T) {
	t.Parallel()

	var next pipelinetest.Recorder

	err := setup(t, map[string]any{"query": ".text", "raw": true}).Transform(t.Context(), pipelinetest.Message(`{"text":"a \"b\""}`), next.Emit)
	if err != nil || string(next.Messages[0].Body) != `a "b"` {
		t.Errorf("made %q, %v", next.Messages[0].Body, err)
	}
}

// TestAProgramThatNeverEndsIsEnded waits in real time, since a program that calculates is not seen by a virtual clock.
func TestAProgramThatNeverEndsIsEnded(t *testing.T) {
	t.Parallel()

	for _, query := range []string{`def f: f; f`, `[range(1e12)] | length`, `last(range(1e12))`, `repeat(empty)`} {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)

		err := setup(t, query).Transform(ctx, pipelinetest.Message("1"), nil)
		if !errors.Is(err, context.DeadlineExceeded) || pipeline.IsRejected(err) {
			t.Errorf("%s: %v", query, err)
		}

		cancel()
	}
}

func TestWrongProgramsAreFoundBeforeTheJobStarts(t *testing.T) {
	t.Parallel()

	for query, want := range map[string]string{
		".a[": "is no jq program", "nofunction(1)": "nofunction/1", "$nothing": "$nothing", "input": "is not allowed", `import "x" as x; 1`: "is no jq program",
	} {
		err := plugins.Decode(query, &jq.Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", query, err)
		}
	}

	if err := plugins.Decode(map[string]any{"query": ".", "most": -1}, &jq.Options{}); err == nil {
		t.Error("a negative limit is taken")
	}

	for _, o := range []jq.Options{{}, {Most: -1}} {
		if _, err := jq.New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func TestResultsAreCounted(t *testing.T) {
	t.Parallel()

	transform := setup(t, ".[]")

	for _, body := range []string{"[]", "[1,2]", "[3]"} {
		var next pipelinetest.Recorder
		if err := transform.Transform(t.Context(), pipelinetest.Message(body), next.Emit); err != nil {
			t.Fatal(err)
		}
	}

	if got := transform.Meter(); got["results"] != 3 || got["filtered"] != 1 {
		t.Errorf("counted %v", got)
	}
}

func FuzzBody(f *testing.F) {
	for _, body := range []string{`{"a":[1,2.5e300,-0,"\ud800"]}`, `[[[[]]]]`, `1e999999`, ``, `nul`} {
		f.Add([]byte(body))
	}

	transform := setup(f, `., (.. | tostring)`)

	f.Fuzz(func(t *testing.T, body []byte) {
		err := transform.Transform(t.Context(), &pipeline.Message{Body: body}, func(*pipeline.Message) error { return nil })
		if err != nil && !pipeline.IsRejected(err) {
			t.Errorf("the error is %v", err)
		}
	})
}

func ExampleTransform() {
	query, err := jq.Parse(`select(.mag >= 4) | { mag, by: $key }`)
	if err != nil {
		fmt.Println(err)

		return
	}

	transform, err := jq.New(jq.Options{Query: query})
	if err != nil {
		fmt.Println(err)

		return
	}

	m := &pipeline.Message{Key: "us1000chhc", Body: []byte(`{"mag":6.4,"place":"Taiwan"}`)}

	err = transform.Transform(context.Background(), m, func(m *pipeline.Message) error {
		fmt.Println(string(m.Body))

		return nil
	})
	fmt.Println(err)
	// Output:
	// {"by":"us1000chhc","mag":6.4}
	// <nil>
}
