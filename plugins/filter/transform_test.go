package filter_test

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/filter"
)

func setup(tb testing.TB, options any) *filter.Transform {
	tb.Helper()

	var o filter.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	transform, err := filter.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return transform
}

func TestTheFilterIsATransform(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, `body.mag >= 4`), nil },
		pipelinetest.Case{
			Name: "meets it", In: pipelinetest.Message(`{"mag":4}`), Want: []*pipeline.Message{pipelinetest.Message(`{"mag":4}`)},
		},
		pipelinetest.Case{Name: "does not", In: pipelinetest.Message(`{"mag":3.9}`)},
		pipelinetest.Case{Name: "does not have it", In: pipelinetest.Message(`{}`), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "no JSON", In: pipelinetest.Message(`{"mag":4`), Fails: pipeline.IsRejected},
	)
}

func TestAFilterNeedsACondition(t *testing.T) {
	t.Parallel()

	if _, err := filter.New(filter.Options{}); err == nil {
		t.Error("a filter without a condition is taken")
	}

	for _, options := range []any{nil, "key", "mag > 1", "body.mag >"} {
		if err := plugins.Decode(options, &filter.Options{}); err == nil {
			t.Errorf("%v is taken for a condition", options)
		}
	}
}
