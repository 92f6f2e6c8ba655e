package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestAQueueIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]pipeline.Queue{
		"quakes/2":          {Topic: "quakes", ID: 2},
		"quakes@broker-a/0": {Topic: "quakes", Broker: "broker-a"},
		"a/b/3":             {Topic: "a/b", ID: 3},
	} {
		got, err := pipeline.ParseQueue(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
	}

	for _, text := range []string{"", "quakes", "/2", "quakes/", "quakes/-1", "quakes/x", "@b/1", "quakes/99999999999"} {
		if q, err := pipeline.ParseQueue(text); err == nil {
			t.Errorf("%q is %+v", text, q)
		}
	}

	in := map[pipeline.Queue]pipeline.Queue{{Topic: "quakes", ID: 2}: {Topic: "quakes", Broker: "b", ID: 1}}

	text, err := json.Marshal(in)
	if err != nil || string(text) != `{"quakes/2":"quakes@b/1"}` {
		t.Errorf("in JSON it is %s, %v", text, err)
	}

	var out map[pipeline.Queue]pipeline.Queue
	if err := json.Unmarshal(text, &out); err != nil || len(out) != 1 || out[pipeline.Queue{Topic: "quakes", ID: 2}].ID != 1 {
		t.Errorf("it is read as %v, %v", out, err)
	}
}

func FuzzParseQueue(f *testing.F) {
	f.Add("quakes/2")
	f.Add("quakes@broker-a/2")
	f.Fuzz(func(t *testing.T, text string) {
		q, err := pipeline.ParseQueue(text)
		if err != nil {
			return
		}

		again, err := pipeline.ParseQueue(q.String())
		if err != nil || again != q {
			t.Errorf("%q is %+v, which is read as %+v, %v", text, q, again, err)
		}
	})
}
