package stdout_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/stdout"
)

func setup(tb testing.TB, options any, to io.Writer) *stdout.Sink {
	tb.Helper()

	var o stdout.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	sink, err := stdout.New(o, to)
	if err != nil {
		tb.Fatal(err)
	}

	return sink
}

func TestTheStdoutSinkIsASink(t *testing.T) {
	t.Parallel()

	pipelinetest.TestSink(t, pipelinetest.Harness{
		New: func(tb testing.TB) (pipeline.Sink, func() []string) {
			tb.Helper()

			var printed bytes.Buffer

			return setup(tb, nil, &printed), func() []string { return strings.Fields(printed.String()) }
		},
	})
}

func TestALineIsABodyOrAWholeMessage(t *testing.T) {
	t.Parallel()

	batch := []*pipeline.Message{
		{Body: []byte(`{"a": 1}`)},
		{Body: []byte("two\nlines\n")},
		{
			ID: "i", Topic: "q", Key: "k", Tag: "t", Props: map[string]string{"p": "v"}, Born: time.Unix(0, 0).UTC(),
			Body: []byte("no <json>"),
		},
	}

	for show, want := range map[string]string{
		"body": "{\"a\": 1}\ntwo\nlines\nno <json>\n",
		"message": `{"body":{"a":1}}` + "\n" + `{"body":"two\nlines\n"}` + "\n" +
			`{"id":"i","topic":"q","key":"k","tag":"t","props":{"p":"v"},"born":"1970-01-01T00:00:00Z",` +
			`"body":"no \u003cjson\u003e"}` + "\n",
	} {
		var printed bytes.Buffer

		sink := setup(t, show, &printed)

		if err := sink.Write(t.Context(), batch); err != nil {
			t.Fatal(err)
		}

		if got := printed.String(); got != want {
			t.Errorf("%s: printed\n%s, want\n%s", show, got, want)
		}

		if got := sink.Meter(); !maps.Equal(got, map[string]int64{"messages": 3, "bytes": int64(len(want))}) {
			t.Errorf("%s: counted %v", show, got)
		}
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWhatCannotBePrintedFails(t *testing.T) {
	t.Parallel()

	sink := setup(t, nil, broken{})

	if err := sink.Write(t.Context(), pipelinetest.Messages("1")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the error is %v", err)
	}

	if got := sink.Meter()["messages"]; got != 0 {
		t.Errorf("%d messages counted as printed", got)
	}

	if _, err := stdout.New(stdout.Options{}, nil); err == nil {
		t.Error("no writer is no error")
	}

	err := plugins.Decode("everything", &stdout.Options{})
	if err == nil || !strings.Contains(err.Error(), `"everything" is neither body nor message`) {
		t.Errorf("the error is %v", err)
	}
}

func ExampleSink() {
	sink, err := stdout.New(stdout.Options{Show: stdout.ShowMessage}, os.Stdout)
	if err != nil {
		fmt.Println(err)

		return
	}

	_ = sink.Write(context.Background(), []*pipeline.Message{{Key: "us1000chhc", Body: []byte(`{"mag":6.4}`)}})
	// Output: {"key":"us1000chhc","body":{"mag":6.4}}
}

// TestCountsDoNotWait asks for the counts while a write waits for whoever reads the output.
func TestCountsDoNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reader, writer := io.Pipe()
		sink := setup(t, nil, writer)

		go func() { _ = sink.Write(t.Context(), []*pipeline.Message{{Body: []byte("x")}}) }()

		synctest.Wait()

		if got := sink.Meter()["messages"]; got != 0 {
			t.Errorf("%d messages printed, which nobody has read", got)
		}

		if _, err := reader.Read(make([]byte, 9)); err != nil {
			t.Error(err)
		}

		synctest.Wait()

		if got := sink.Meter()["messages"]; got != 1 {
			t.Errorf("%d messages printed", got)
		}
	})
}
