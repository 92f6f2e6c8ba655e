package mapping_test

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/mapping"
)

type table = map[string]any

func setup(tb testing.TB, options any) *mapping.Transform {
	tb.Helper()

	var o mapping.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	transform, err := mapping.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return transform
}

func message(body, key, tag string, props map[string]string) *pipeline.Message {
	m := pipelinetest.Message(body)
	m.Key, m.Tag, m.Props = key, tag, props

	return m
}

func TestTheMapIsATransform(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		name     string
		options  any
		in, want *pipeline.Message
	}{
		{
			"all at once, of the message as it came in",
			table{
				"body": `{old: key, n: body.n * 2}`, "key": `body.n`, "tag": `key`,
				"props": table{"a": `props.b`, "b": `nil`, "l": `body.list`},
			},
			message(`{"n":2,"list":[1, 2]}`, "k", "t", map[string]string{"b": "x", "c": "y"}),
			message(`{"n":4,"old":"k"}`, "2", "k", map[string]string{"a": "x", "c": "y", "l": "[1, 2]"}),
		},
		{"the body alone", `body.text`, message(`{"text":"a\nb"}`, "k", "", nil), message(`"a\nb"`, "k", "", nil)},
		{"a raw body", table{"body": `body.text`, "raw": true}, message(`{"text":"a\nb"}`, "", "", nil), message("a\nb", "", "", nil)},
		{
			"properties of none",
			table{"props": table{"a": `"1"`}},
			message(`no JSON`, "", "", nil),
			message(`no JSON`, "", "", map[string]string{"a": "1"}),
		},
		{"a key of nil", table{"key": `body.nothing`}, message(`{}`, "k", "", nil), message(`{}`, "", "", nil)},
	} {
		pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, c.options), nil },
			pipelinetest.Case{Name: c.name, In: c.in, Want: []*pipeline.Message{c.want}},
		)
	}

	for _, options := range []any{`body.a`, table{"key": `lower(body.a)`}, table{"props": table{"a": `body.b + 1`}}} {
		pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, options), nil },
			pipelinetest.Case{Name: "no JSON", In: pipelinetest.Message(`{`), Fails: pipeline.IsRejected},
		)
	}
}

func TestAMapNeedsSomethingToMake(t *testing.T) {
	t.Parallel()

	if _, err := mapping.New(mapping.Options{Raw: true}); err == nil {
		t.Error("a map that makes nothing is taken")
	}
}
