package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vmihailenco/msgpack/v5"
	"go.uber.org/zap"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
)

// setup returns a stage that is open.
func setup(tb testing.TB, o Options, log *zap.Logger) *Gather {
	tb.Helper()

	g, err := New(o, log)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})

	return g
}

// work sends bodies and returns what comes of them: bodies, and errors by number.
func work(tb testing.TB, g *Gather, bodies ...string) (outs []string, failed map[int]error) {
	tb.Helper()

	return workFor(tb, g, time.Minute, bodies...)
}

func workFor(tb testing.TB, g *Gather, patience time.Duration, bodies ...string) (outs []string, failed map[int]error) {
	tb.Helper()

	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()

	var next pipelinetest.Recorder

	err := g.TransformBatch(ctx, pipelinetest.Messages(bodies...), next.Emit)
	if partial, ok := errors.AsType[*pipeline.BatchError](err); ok {
		failed = partial.Failed
	} else if err != nil {
		tb.Fatal(err)
	}

	for _, m := range next.Messages {
		outs = append(outs, string(m.Body))
	}

	return outs, failed
}

func TestAProgramSeesMessagesAndSaysWhatBecomesOfThem(t *testing.T) {
	t.Parallel()

	g := setup(t, helper("plain"), nil)

	m := pipelinetest.Message("header")
	m.Key, m.Tag = "k", "t"
	m.SetProp("p", "v")

	plain := pipelinetest.Message("as it is")
	batch := []*pipeline.Message{m, plain, pipelinetest.Message("drop"), pipelinetest.Message("twice over"), pipelinetest.Message("")}

	var next pipelinetest.Recorder
	if err := g.TransformBatch(t.Context(), batch, next.Emit); err != nil {
		t.Fatal(err)
	}

	if len(next.Messages) != 5 {
		t.Fatalf("%d outputs", len(next.Messages))
	}

	var header map[string]any
	if err := msgpack.Unmarshal(next.Messages[0].Body, &header); err != nil {
		t.Fatal(err)
	}

	want := fmt.Sprint(map[string]any{
		"id": "message-0", "topic": "test", "key": "k", "tag": "t", "props": map[string]any{"p": "v"}, "born": m.Born.UnixNano(), "delivery": 1,
	})
	if fmt.Sprint(header) != want || next.Messages[0].Props["p"] != "v" || next.Messages[0].Key != "k" {
		t.Errorf("the header is %v, want %s; the message %+v", header, want, next.Messages[0])
	}

	if next.Messages[1] != plain {
		t.Error("a message that goes on as it is was copied")
	}

	one, two := next.Messages[2], next.Messages[3]
	if string(one.Body) != "twice over" || one.ID != "message-0" {
		t.Errorf("the first of two is %+v", one)
	}

	if string(two.Body) != "over" || two.ID != "i" || two.Key != "k" || two.Tag != "t" || two.Props["p"] != "v" || two.Origin != one.Origin {
		t.Errorf("the second of two is %+v", two)
	}

	if c := g.Meter(); c["messages"] != 5 || c["made"] != 5 || c["refused"] != 0 || c["starts"] != 1 || c["failures"] != 0 {
		t.Errorf("counted %v", c)
	}
}

func TestWhatTheProgramRefusesFailsAlone(t *testing.T) {
	t.Parallel()

	g := setup(t, helper("plain"), nil)
	outs, failed := work(t, g, "a", "fail f", "reject r", "later l", "b")

	if !slices.Equal(outs, []string{"a", "b"}) || len(failed) != 3 {
		t.Fatalf("made %q, failed %v", outs, failed)
	}

	if err := failed[1]; err.Error() != "exec: f" || pipeline.IsRejected(err) {
		t.Errorf("the failure is %v", err)
	}

	if err := failed[2]; !pipeline.IsRejected(err) {
		t.Errorf("the rejection is %v", err)
	}

	if delay, ok := pipeline.RetryDelay(failed[3]); !ok || delay != 1500*time.Millisecond {
		t.Errorf("the delay is %s", delay)
	}

	if c := g.Meter(); c["refused"] != 3 || c["starts"] != 1 {
		t.Errorf("counted %v", c)
	}
}

// TestOneMessageCannotFailTheOthersForever has a crash fail its batch once; after that, only the message at fault fails.
func TestOneMessageCannotFailTheOthersForever(t *testing.T) {
	t.Parallel()

	g := setup(t, helper("plain"), nil)
	bodies := []string{"a", "b", "crash", "c"}

	outs, failed := work(t, g, bodies...)
	if len(outs) != 0 || len(failed) != 4 {
		t.Fatalf("made %q, failed %v", outs, failed)
	}

	for i, err := range failed {
		if pipeline.IsRejected(err) || !strings.Contains(err.Error(), "the program has ended: exit status 7") {
			t.Errorf("message %d: %v", i, err)
		}
	}

	outs, failed = work(t, g, bodies...)
	if !slices.Equal(outs, []string{"a", "b", "c"}) || len(failed) != 1 || failed[2] == nil {
		t.Fatalf("again, made %q, failed %v", outs, failed)
	}

	// After some good ones, batches are batches again.
	for range 4 {
		work(t, g, "a", "b", "c", "d")
	}

	if g.careful != 0 {
		t.Errorf("%d messages are still sent one by one", g.careful)
	}

	if c := g.Meter(); c["starts"] != 3 || c["failures"] != 2 {
		t.Errorf("counted %v", c)
	}
}

func TestAProgramThatHangsOrTalksNonsenseIsReplaced(t *testing.T) {
	t.Parallel()

	for body, want := range map[string]string{
		"hang": "context deadline exceeded", "nonsense": "the answer: ", "flood": "a frame of", "log": "",
	} {
		t.Run(body, func(t *testing.T) {
			t.Parallel()

			o := helper("plain")
			o.Frame = 64 << 10
			g := setup(t, o, nil)

			patience := time.Minute
			if body == "hang" {
				work(t, g, "warm") // so that the deadline is not that of the start
				patience = 100 * time.Millisecond
			}

			_, failed := workFor(t, g, patience, body)
			if want != "" && (failed[0] == nil || !strings.Contains(failed[0].Error(), want) || pipeline.IsRejected(failed[0])) {
				t.Errorf("the failure is %v", failed[0])
			}

			if outs, failed := work(t, g, "a"); !slices.Equal(outs, []string{"a"}) {
				t.Errorf("after that, made %q, failed %v", outs, failed)
			}
		})
	}
}

func TestAProgramDoesNotSeeTheJobsEnvironment(t *testing.T) {
	t.Setenv("EXEC_TEST_SECRET", "s3cret")

	o := helper("plain")
	o.Env["MODEL"] = "small"

	outs, _ := work(t, setup(t, o, nil), "environment")
	if strings.Contains(outs[0], "s3cret") || !strings.Contains(outs[0], "MODEL=small") || !strings.Contains(outs[0], "PATH=") {
		t.Errorf("the environment is %s", outs[0])
	}
}

func TestMessagesThatDoNotFitIntoAFrame(t *testing.T) {
	t.Parallel()

	o := helper("plain")
	o.Frame = 8 << 10
	g := setup(t, o, nil)

	half := strings.Repeat("y", 4000)

	outs, failed := work(t, g, "a", strings.Repeat("x", 8<<10), half, half, half, "b")
	if !slices.Equal(outs, []string{"a", half, half, half, "b"}) || len(failed) != 1 || !pipeline.IsRejected(failed[1]) {
		t.Errorf("made %d, failed %v", len(outs), failed)
	}
}

func TestAnErrorOfTheNextStageIsReturned(t *testing.T) {
	t.Parallel()

	refusal := errors.New("no room")
	g := setup(t, helper("plain"), nil)

	for range 2 {
		next := pipelinetest.Recorder{Err: refusal, After: 1}
		if err := g.TransformBatch(t.Context(), pipelinetest.Messages("a", "b", "c"), next.Emit); !errors.Is(err, refusal) || next.Refused != 1 {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestTheTransformIsATransform(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return NewTransform(helper("plain"), nil) },
		pipelinetest.Case{Name: "as it is", In: pipelinetest.Message("x"), Want: []*pipeline.Message{pipelinetest.Message("x")}},
		pipelinetest.Case{Name: "dropped", In: pipelinetest.Message("drop")},
		pipelinetest.Case{Name: "refused", In: pipelinetest.Message("reject x"), Fails: pipeline.IsRejected},
		pipelinetest.Case{Name: "crash", In: pipelinetest.Message("crash"), Fails: pipelinetest.AnyError},
	)
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for _, options := range []any{
		nil, []any{}, []any{""}, map[string]any{"command": []any{"x"}, "frame": 10}, map[string]any{"command": []any{"x"}, "most": -1},
	} {
		if err := plugins.Decode(options, &Options{}); err == nil {
			t.Errorf("%v is taken", options)
		}
	}

	if _, err := New(Options{}, nil); err == nil {
		t.Error("no command is taken")
	}

	if _, err := NewTransform(Options{}, nil); err == nil {
		t.Error("no command is taken")
	}
}
