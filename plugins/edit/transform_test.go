package edit_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/edit"
)

func setup(tb testing.TB, options any) *edit.Transform {
	tb.Helper()

	var o edit.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	transform, err := edit.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return transform
}

type table = map[string]any

func TestJSONIsATransform(t *testing.T) {
	t.Parallel()

	options := table{
		"set":    table{"severity": `body.mag >= 6 ? "major" : "minor"`, "seen.by": `key + "!"`, "list": `body.list`},
		"rename": table{"mag": "magnitude"}, "remove": []any{"detail", "user.secret"},
	}
	in := `{"mag":6.50, "detail":"x","user":{"id":1,"secret":2},"list":[1,{"a":1.0}],"n":12345678901234567890.1}`
	want := `{"user":{"id":1},"list":[1,{"a":1.0}],"n":12345678901234567890.1,"seen":{"by":"!"},"severity":"major","magnitude":6.50}`

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, options), nil },
		pipelinetest.Case{Name: "all", In: pipelinetest.Message(in), Want: []*pipeline.Message{pipelinetest.Message(want)}},
		pipelinetest.Case{Name: "no JSON", In: pipelinetest.Message(`{"mag":4`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no object", In: pipelinetest.Message(`[1]`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no object there", In: pipelinetest.Message(`{"mag":1,"seen":1}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no value", In: pipelinetest.Message(`{}`), Fails: pipeline.IsRejected},
	)
}

func TestAllChangesSeeTheBodyAsItCameIn(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		options  table
		in, want string
	}{
		{table{"set": table{"a": "body.b", "b": "body.a"}}, `{"a":1,"b":2}`, `{"a":2,"b":1}`},
		{table{"set": table{"a": "body.b"}, "rename": table{"b": "c"}}, `{"a":1,"b":2}`, `{"a":2,"c":2}`},
		{table{"set": table{"a": "body.nothing"}}, `{"a":1}`, `{"a":null}`},
		{table{"pick": []any{"b"}, "set": table{"a": "body.b + 1"}}, `{"a":1,"b":2,"c":3}`, `{"a":3,"b":2}`},
		{table{"pick": []any{}}, `{"a":1}`, `{}`},
	} {
		var next pipelinetest.Recorder

		m := pipelinetest.Message(c.in)
		if err := setup(t, c.options).Transform(t.Context(), m, next.Emit); err != nil {
			t.Fatal(err)
		}

		if got := string(next.Messages[0].Body); got != c.want {
			t.Errorf("%v makes %s of %s, want %s", c.options, got, c.in, c.want)
		}
	}
}

func TestTheStagesBehindDoNotParseTheBodyAgain(t *testing.T) {
	t.Parallel()

	var next pipelinetest.Recorder

	m := pipelinetest.Message(`{"a":1}`)
	if err := setup(t, table{"set": table{"a": "2"}}).Transform(t.Context(), m, next.Emit); err != nil {
		t.Fatal(err)
	}

	kept, ok := next.Messages[0].Memo().(*document.Document)
	if !ok || string(kept.Get(document.Name("a")).Raw()) != "2" {
		t.Errorf("the message has %v with it", kept)
	}
}

func TestOptionsThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]any{
		"nothing is changed; give set, remove, rename or pick": table{},
		"a is changed twice":                  table{"set": table{"a": "1"}, "remove": []any{"a"}},
		"set.a: unknown name \"mag\"":         table{"set": table{"a": "mag"}},
		`set: "a..b": there is no name`:       table{"set": table{"a..b": "1"}},
		"so there is nothing left to remove":  table{"pick": []any{"a"}, "remove": []any{"b"}},
		`rename.a: "b.": there is no name`:    table{"rename": table{"a": "b."}},
		`there is no name behind a dot`:       table{"rename": table{"a.": "b"}},
		"remove[0]: \"a[\": [ is no step":     table{"remove": []any{"a["}},
		"a.b is changed twice: it is part of": table{"set": table{"a": "1", "a.b": "2"}},
	} {
		if err := plugins.Decode(options, &edit.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v fails with %v, want %s", options, err, want)
		}
	}
}
