package jobtest

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
)

func TestBodiesAreComparedByWhatTheyMean(t *testing.T) {
	t.Parallel()

	for _, c := range []struct {
		want, got string
		differ    []string
	}{
		{`{"a": 1, "b": [true, null]}`, `{"b":[true,null],"a":1.0}`, nil},
		{`1e3`, `1000`, nil},
		{`9007199254740993`, `9007199254740992`, []string{"body: got 9007199254740992, want 9007199254740993"}},
		{`text`, `text`, nil},
		{`text`, `{}`, []string{`body: got {}, want "text"`}},
		{`"a"`, `"b"`, []string{`body: got "b", want "a"`}},
		{`[1, 2]`, `[1]`, []string{"body: got [1], want [1,2]"}},
		{`[{"a": {"b": 1}}]`, `[{"a": {"b": 2, "c": 3}}]`, []string{
			"body[0].a.b: got 2, want 1", "body[0].a.c: got 3, which nobody expected",
		}},
		{`{"a": 1}`, `{}`, []string{"body.a: missing, want 1"}},
		{`null`, `false`, []string{"body: got false, want null"}},
		{"\x00", "\x01", []string{`body: got "\x01", want "\x00"`}},
		{``, `x`, []string{`body: got "x", want ""`}},
	} {
		got := differences(jobfile.TestMessage{Body: []byte(c.want)}, &pipeline.Message{Body: []byte(c.got)})
		if !slices.Equal(got, c.differ) {
			t.Errorf("%s and %s differ by %q, want %q", c.want, c.got, got, c.differ)
		}
	}

	if got := differences(jobfile.TestMessage{}, &pipeline.Message{Key: "k", Body: []byte("x")}); got != nil {
		t.Errorf("what is not written is expected: %q", got)
	}
}
