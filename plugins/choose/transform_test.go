package choose_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/choose"
)

type table = map[string]any

func TestTheSwitchIsATransform(t *testing.T) {
	t.Parallel()

	options := []any{
		table{"when": "body.n == nil", "reject": "no n"},
		table{"when": "body.n < 0", "drop": true},
		table{"when": "body.n < 10", "tag": "small", "key": "s", "props": table{"a": "1"}},
		table{"when": "body.n < 100"},
		table{"when": "body.n < 1000", "tag": "big"},
	}

	message := func(body, key, tag string) *pipeline.Message {
		m := pipelinetest.Message(body)
		m.Key, m.Tag = key, tag

		return m
	}

	small := message(`{"n":5}`, "s", "small")
	small.SetProp("a", "1")

	fresh := func() (pipeline.Transform, error) {
		var o choose.Options
		if err := plugins.Decode(options, &o); err != nil {
			return nil, err
		}

		return choose.New(o)
	}

	pipelinetest.TestTransform(t, fresh,
		pipelinetest.Case{Name: "the first that it meets", In: message(`{"n":5}`, "k", "t"), Want: []*pipeline.Message{small}},
		pipelinetest.Case{
			Name: "one that says nothing", In: message(`{"n":50}`, "k", "t"), Want: []*pipeline.Message{message(`{"n":50}`, "k", "t")},
		},
		pipelinetest.Case{
			Name: "the last", In: message(`{"n":500}`, "k", "t"), Want: []*pipeline.Message{message(`{"n":500}`, "k", "big")},
		},
		pipelinetest.Case{
			Name: "none", In: message(`{"n":5000}`, "k", "t"), Want: []*pipeline.Message{message(`{"n":5000}`, "k", "t")},
		},
		pipelinetest.Case{Name: "dropped", In: pipelinetest.Message(`{"n":-1}`)},
		pipelinetest.Case{Name: "rejected", In: pipelinetest.Message(`{}`), Fails: func(err error) bool {
			return pipeline.IsRejected(err) && strings.Contains(err.Error(), "switch: no n")
		}},
		pipelinetest.Case{Name: "not to be told", In: pipelinetest.Message(`{"n":"x"}`), Fails: pipeline.IsRejected},
	)
}

func TestCasesThatCannotBeMeantAreRefused(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]any{
		"there are no cases":            []any{},
		"cases[0]: every message meets": []any{table{"tag": "a"}, table{"tag": "b"}},
		"cases[0]: a message is dropped, rejected, or given something; choose one": []any{table{"drop": true, "tag": "a"}},
		"cases[0].when: unknown name": []any{table{"when": "mag > 1"}},
	} {
		if err := plugins.Decode(options, &choose.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v fails with %v, want %s", options, err, want)
		}
	}
}
