package archive_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/archive"
)

func gather(tb testing.TB, options any) *archive.Gather {
	tb.Helper()

	var o archive.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	g, err := archive.New(o)
	if err != nil {
		tb.Fatal(err)
	}

	return g
}

func unarchive(tb testing.TB, options any) *archive.Unarchive {
	tb.Helper()

	var o archive.UnarchiveOptions
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	u, err := archive.NewUnarchive(o)
	if err != nil {
		tb.Fatal(err)
	}

	return u
}

func TestABatchBecomesOneBody(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		format string
		bodies []string
		want   string
		failed []int
	}{
		{"lines", []string{"a", "b\n", "c\r\n", ""}, "a\nb\nc\n\n", nil},
		{"lines", []string{"{\n\"a\": 1\n}", "x\ny", "z"}, "{\"a\":1}\nz\n", []int{1}},
		{"array", []string{"1", " {\"a\": [1, 2]} ", "null"}, `[1,{"a":[1,2]},null]`, nil},
		{"array", []string{"x", "1", "", "2", "{"}, `[1,2]`, []int{0, 2, 4}},
		{"array", []string{"x"}, "", []int{0}},
		{"lines", nil, "", nil},
	} {
		var next pipelinetest.Recorder

		g := gather(t, test.format)
		err := g.TransformBatch(t.Context(), pipelinetest.Messages(test.bodies...), next.Emit)

		got := ""
		if len(next.Messages) == 1 {
			got = string(next.Messages[0].Body)
		}

		if got != test.want || len(next.Messages) > 1 {
			t.Errorf("%s: %q becomes %d messages, the first %q, want %q", test.format, test.bodies, len(next.Messages), got, test.want)
		}

		partial, _ := errors.AsType[*pipeline.BatchError](err)
		if (err != nil) != (len(test.failed) > 0) || err != nil && len(partial.Failed) != len(test.failed) {
			t.Errorf("%s: %q: the error is %v", test.format, test.bodies, err)
		}

		for _, i := range test.failed {
			if !pipeline.IsRejected(partial.Failed[i]) {
				t.Errorf("%s: %q: message %d: %v", test.format, test.bodies, i, partial.Failed[i])
			}
		}

		if c := g.Meter(); test.want != "" && c["archives"] != 1 || c["messages"] != int64(len(test.bodies)-len(test.failed)) {
			t.Errorf("%s: %q: counted %v", test.format, test.bodies, c)
		}
	}
}

func TestAnArchiveHasWhatItsMessagesHaveInCommon(t *testing.T) {
	t.Parallel()

	batch := pipelinetest.Messages("1", "2")
	for i, m := range batch {
		m.Key, m.Tag = "k", strconv.Itoa(i)
	}

	var next pipelinetest.Recorder
	if err := gather(t, nil).TransformBatch(t.Context(), batch, next.Emit); err != nil {
		t.Fatal(err)
	}

	got := next.Messages[0]
	if got.ID != "message-0" || got.Topic != "test" || got.Key != "k" || got.Tag != "" || !got.Born.Equal(batch[0].Born) {
		t.Errorf("the archive is %+v", got)
	}
}

func TestAnErrorOfTheNextStageIsReturned(t *testing.T) {
	t.Parallel()

	refusal := errors.New("no room")
	next := pipelinetest.Recorder{Err: refusal}
	g := gather(t, nil)

	if err := g.TransformBatch(t.Context(), pipelinetest.Messages("1"), next.Emit); !errors.Is(err, refusal) {
		t.Errorf("the error is %v", err)
	}

	if c := g.Meter(); c["archives"] != 0 {
		t.Errorf("counted %v", c)
	}
}

// whole is a message with everything.
func whole() *pipeline.Message {
	return &pipeline.Message{
		ID: "a", Topic: "test", Key: "k\u2028", Tag: "t", Props: map[string]string{"p": "v"}, Body: []byte("text\n\"<x>"),
		Born: time.Unix(1, 5).UTC(),
	}
}

func TestWhatWasArchivedComesBack(t *testing.T) {
	t.Parallel()

	batch := []*pipeline.Message{whole(), {ID: "b", Topic: "test", Body: []byte("\xff\x00")}, {Topic: "test", Body: []byte{}}}

	var archives, next pipelinetest.Recorder
	if err := gather(t, "messages").TransformBatch(t.Context(), batch, archives.Emit); err != nil {
		t.Fatal(err)
	}

	u := unarchive(t, "messages")
	if err := u.Transform(t.Context(), archives.Messages[0], next.Emit); err != nil {
		t.Fatal(err)
	}

	if !reflect.DeepEqual(next.Messages, batch) {
		t.Errorf("%+v came back of\n%s", next.Messages, archives.Messages[0].Body)
	}

	if c := u.Meter(); !maps.Equal(c, map[string]int64{"archives": 1, "messages": 3}) {
		t.Errorf("counted %v", c)
	}

	lossy := whole()
	lossy.Key = "\xff"

	if err := gather(t, "messages").TransformBatch(t.Context(), []*pipeline.Message{lossy}, archives.Emit); err == nil {
		t.Error("a key that is no text is archived")
	}
}

// piece is a message of an archive of the suite.
func piece(n int, body string) *pipeline.Message {
	m := pipelinetest.Message(body)
	m.ID = fmt.Sprintf("message-0/%d", n)

	return m
}

func TestUnarchiveIsATransform(t *testing.T) {
	t.Parallel()

	for format, cases := range map[string][]pipelinetest.Case{
		"lines": {{
			Name: "lines", In: pipelinetest.Message("a\n\nb\n"), Want: []*pipeline.Message{piece(0, "a"), piece(1, "b")},
		}, {
			Name: "too many", In: pipelinetest.Message("a\nb\nc"), Fails: pipeline.IsRejected,
		}},
		"array": {{
			Name: "array", In: pipelinetest.Message("[1, 2]"), Want: []*pipeline.Message{piece(0, "1"), piece(1, "2")},
		}, {
			Name: "no array", In: pipelinetest.Message("{}"), Fails: pipeline.IsRejected,
		}},
		"messages": {
			{
				Name: "whole", In: pipelinetest.Message(`{"id":"a","key":"k\u2028","tag":"t","props":{"p":"v"},"born":"1970-01-01T00:00:01.000000005Z","text":"text\n\"<x>"}`),
				Want: []*pipeline.Message{whole()},
			},
			{Name: "unknown", In: pipelinetest.Message(`{"identity":"a"}`), Fails: pipeline.IsRejected},
			{Name: "two bodies", In: pipelinetest.Message(`{"text":"a","bytes":"YQ=="}`), Fails: pipeline.IsRejected},
			{Name: "two in a line", In: pipelinetest.Message(`{"text":"a"}{}`), Fails: pipeline.IsRejected},
			{Name: "second line broken", In: pipelinetest.Message("{}\n{"), Fails: pipeline.IsRejected},
		},
	} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			pipelinetest.TestTransform(t, func() (pipeline.Transform, error) {
				return unarchive(t, map[string]any{"format": format, "most": 2}), nil
			}, cases...)
		})
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	if err := plugins.Decode("line", &archive.Options{}); err == nil || !strings.Contains(err.Error(), `did you mean "lines"?`) {
		t.Errorf("the error is %v", err)
	}

	if err := plugins.Decode(map[string]any{"most": -1}, &archive.UnarchiveOptions{}); err == nil {
		t.Error("a negative limit is taken")
	}

	if _, err := archive.New(archive.Options{Format: 9}); err == nil {
		t.Error("format 9 archives")
	}

	for _, o := range []archive.UnarchiveOptions{{Format: 9}, {Most: -1}} {
		if _, err := archive.NewUnarchive(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

func FuzzUnarchive(f *testing.F) {
	f.Add([]byte(`{"id":"a","text":"x"}` + "\n" + `{"bytes":"/w=="}`))
	f.Add([]byte(`{"born":"x"}`))

	f.Fuzz(func(t *testing.T, body []byte) {
		var first pipelinetest.Recorder

		err := unarchive(t, "messages").Transform(t.Context(), &pipeline.Message{Body: body}, first.Emit)
		if err != nil {
			if !pipeline.IsRejected(err) || len(first.Messages) > 0 {
				t.Errorf("%d messages, %v", len(first.Messages), err)
			}

			return
		}

		if len(first.Messages) == 0 {
			return
		}

		// What was read can be written and read again.
		var again, second pipelinetest.Recorder
		if err := gather(t, "messages").TransformBatch(t.Context(), first.Messages, again.Emit); err != nil {
			t.Fatal(err)
		}

		if err := unarchive(t, "messages").Transform(t.Context(), again.Messages[0], second.Emit); err != nil {
			t.Fatal(err)
		}

		if len(second.Messages) != len(first.Messages) {
			t.Errorf("%d messages became %d", len(first.Messages), len(second.Messages))
		}
	})
}

func ExampleGather() {
	g, err := archive.New(archive.Options{Format: archive.Array})
	if err != nil {
		fmt.Println(err)

		return
	}

	batch := []*pipeline.Message{{Body: []byte(`{"mag":6.4}`)}, {Body: []byte(`{"mag":4.1}`)}}

	err = g.TransformBatch(context.Background(), batch, func(m *pipeline.Message) error {
		fmt.Println(string(m.Body))

		return nil
	})
	fmt.Println(err)
	// Output:
	// [{"mag":6.4},{"mag":4.1}]
	// <nil>
}
