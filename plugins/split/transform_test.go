package split_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/split"
)

// fresh returns the factory of transforms with these options.
func fresh(tb testing.TB, options any) func() (pipeline.Transform, error) {
	tb.Helper()

	var o split.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	return func() (pipeline.Transform, error) { return split.New(o) }
}

// piece is a message of the suite, cut.
func piece(n int, body string) *pipeline.Message {
	m := pipelinetest.Message(body)
	m.ID = fmt.Sprintf("message-0/%d", n)

	return m
}

func TestElementsAreCut(t *testing.T) {
	t.Parallel()

	nameless := pipelinetest.Message("[1]")
	nameless.ID = ""
	namelessPiece := pipelinetest.Message("1")
	namelessPiece.ID = ""

	pipelinetest.TestTransform(t, fresh(t, map[string]any{"most": 3}),
		pipelinetest.Case{
			Name: "array", In: pipelinetest.Message(` [ {"a":[1,2]}, "x,y",3 ] `),
			Want: []*pipeline.Message{piece(0, `{"a":[1,2]}`), piece(1, `"x,y"`), piece(2, `3`)},
		},
		pipelinetest.Case{Name: "empty array", In: pipelinetest.Message(`[]`)},
		pipelinetest.Case{Name: "no id", In: nameless, Want: []*pipeline.Message{namelessPiece}},
		pipelinetest.Case{Name: "no array", In: pipelinetest.Message(`{"a":1}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "broken", In: pipelinetest.Message(`[1,`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "too many", In: pipelinetest.Message(`[1,2,3,4]`), Fails: pipeline.IsRejected},
	)
}

func TestLinesAreCut(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, fresh(t, "lines"),
		pipelinetest.Case{
			Name: "lines", In: pipelinetest.Message("a\r\n\nb\n"), Want: []*pipeline.Message{piece(0, "a"), piece(1, "b")},
		},
		pipelinetest.Case{Name: "empty", In: pipelinetest.Message("")},
	)
}

func TestAMessageWithTooManyPiecesLeavesNone(t *testing.T) {
	t.Parallel()

	transform, err := split.New(split.Options{By: split.Lines, Most: 2})
	if err != nil {
		t.Fatal(err)
	}

	var next pipelinetest.Recorder

	err = transform.Transform(t.Context(), pipelinetest.Message("a\nb\nc"), next.Emit)
	if !pipeline.IsRejected(err) || !strings.Contains(err.Error(), "more than 2 pieces") || len(next.Messages) != 0 {
		t.Errorf("%d pieces were emitted, %v", len(next.Messages), err)
	}

	if err := transform.Transform(t.Context(), pipelinetest.Message("a\nb"), next.Emit); err != nil {
		t.Error(err)
	}

	if got := transform.Meter()["pieces"]; got != 2 {
		t.Errorf("counted %d pieces, want 2", got)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for _, options := range []any{"words", map[string]any{"most": -1}, map[string]any{"into": "lines"}} {
		if err := plugins.Decode(options, &split.Options{}); err == nil {
			t.Errorf("%v is taken", options)
		}
	}

	if _, err := split.New(split.Options{Most: -1}); err == nil {
		t.Error("a negative limit is taken")
	}
}

func ExampleTransform() {
	transform, err := split.New(split.Options{By: split.Elements})
	if err != nil {
		fmt.Println(err)

		return
	}

	m := &pipeline.Message{ID: "7", Body: []byte(`[{"mag":6.4}, {"mag":4.1}]`)}

	err = transform.Transform(context.Background(), m, func(m *pipeline.Message) error {
		fmt.Println(m.ID, string(m.Body))

		return nil
	})
	fmt.Println(err)
	// Output:
	// 7/0 {"mag":6.4}
	// 7/1 {"mag":4.1}
	// <nil>
}
