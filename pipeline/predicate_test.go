package pipeline_test

import (
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func TestPredicates(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{Tag: "major", Key: "us2000d3km", Props: map[string]string{"region": "Alaska", "note": ""}}

	for _, test := range []struct {
		name string
		pick func(*pipeline.Message) bool
		want bool
	}{
		{"its tag", pipeline.Tagged("major"), true},
		{"one of two tags", pipeline.Tagged("moderate", "major"), true},
		{"another tag", pipeline.Tagged("minor"), false},
		{"no tag at all", pipeline.Tagged(), false},
		{"the begin of its key", pipeline.KeyPrefixed("us"), true},
		{"the begin of another key", pipeline.KeyPrefixed("ak"), false},
		{"a part of its key", pipeline.KeyPrefixed("2000"), false},
		{"its property", pipeline.PropIs("region", "Nevada", "Alaska"), true},
		{"another value", pipeline.PropIs("region", "Nevada"), false},
		{"an empty value that is there", pipeline.PropIs("note", ""), true},
		{"an empty value that is not there", pipeline.PropIs("depth", ""), false},
	} {
		if got := test.pick(m); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}

	if pipeline.PropIs("region", "")(&pipeline.Message{}) {
		t.Error("a message without properties has one")
	}
}
