package label_test

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/label"
)

func TestLabelsAreTransforms(t *testing.T) {
	t.Parallel()

	message := func(body, key, tag string) *pipeline.Message {
		m := pipelinetest.Message(body)
		m.Key, m.Tag = key, tag

		return m
	}

	for _, c := range []struct {
		fresh    func(label.Options) (*label.Transform, error)
		value    string
		in, want *pipeline.Message
	}{
		{label.NewKey, `body.user`, message(`{"user":"u"}`, "k", "t"), message(`{"user":"u"}`, "u", "t")},
		{label.NewKey, `body.n`, message(`{"n":1.50}`, "k", "t"), message(`{"n":1.50}`, "1.5", "t")},
		{label.NewKey, `body.nothing`, message(`{}`, "k", "t"), message(`{}`, "", "t")},
		{label.NewTag, `body.mag >= 6 ? "major" : key`, message(`{"mag":1}`, "k", "t"), message(`{"mag":1}`, "k", "k")},
		{label.NewTag, `body.mag`, message(`{`, "k", "t"), nil},
	} {
		var o label.Options
		if err := plugins.Decode(c.value, &o); err != nil {
			t.Fatal(err)
		}

		test := pipelinetest.Case{Name: c.value, In: c.in, Fails: pipeline.IsRejected}
		if c.want != nil {
			test.Fails, test.Want = nil, []*pipeline.Message{c.want}
		}

		pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return c.fresh(o) }, test)
	}

	if _, err := label.NewKey(label.Options{}); err == nil {
		t.Error("no expression is taken")
	}
}
