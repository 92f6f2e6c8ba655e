package logger_test

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/logger"
)

func setup(tb testing.TB, options any) (*logger.Transform, *observer.ObservedLogs) {
	tb.Helper()

	var o logger.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	core, lines := observer.New(zapcore.InfoLevel)

	transform, err := logger.New(o, zap.New(core))
	if err != nil {
		tb.Fatal(err)
	}

	return transform, lines
}

func TestTheLogIsATransform(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) {
		transform, _ := setup(t, nil)

		return transform, nil
	}, pipelinetest.Case{Name: "any", In: pipelinetest.Message("x"), Want: []*pipeline.Message{pipelinetest.Message("x")}})
}

func pass(tb testing.TB, transform pipeline.Transform, m *pipeline.Message) {
	tb.Helper()

	var next pipelinetest.Recorder
	if err := transform.Transform(tb.Context(), m, next.Emit); err != nil || len(next.Messages) != 1 {
		tb.Fatalf("%d messages passed, %v", len(next.Messages), err)
	}
}

func TestALineHasWhatIsAskedFor(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		options any
		level   zapcore.Level
		text    string
		want    map[string]any
	}{
		{nil, zap.InfoLevel, "message", map[string]any{"id": "message-0", "key": "k"}},
		{"seen", zap.InfoLevel, "seen", map[string]any{"id": "message-0", "key": "k"}},
		{
			map[string]any{"level": "warn", "fields": []any{"text", "props.p", "props.q"}, "longest": 3},
			zap.WarnLevel, "message",
			map[string]any{"text": "a\uFFFD…", "props.p": "v"},
		},
	} {
		transform, lines := setup(t, test.options)
		m := pipelinetest.Message("a\u20ac\u20ac")
		m.Key = "k"
		m.SetProp("p", "v")

		pass(t, transform, m)

		got := lines.TakeAll()
		if len(got) != 1 || got[0].Level != test.level || got[0].Message != test.text || !reflect.DeepEqual(got[0].ContextMap(), test.want) {
			t.Errorf("%v: logged %+v", test.options, got)
		}
	}

	transform, lines := setup(t, map[string]any{"level": "debug"})
	pass(t, transform, pipelinetest.Message("x"))

	if lines.Len() != 0 || transform.Meter()["logged"] != 0 {
		t.Error("a line below the level of the log is logged")
	}
}

func TestALaneDoesNotFloodTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		transform, lines := setup(t, map[string]any{"per_second": 3})

		for range 100 {
			pass(t, transform, pipelinetest.Message("x"))
		}

		if lines.Len() != 3 {
			t.Errorf("%d lines in a second, want 3", lines.Len())
		}

		<-time.After(time.Second)
		pass(t, transform, pipelinetest.Message("x"))
		pass(t, transform, pipelinetest.Message("x"))

		got := lines.TakeAll()[3:]
		if len(got) != 2 || got[0].ContextMap()["left_out"] != int64(97) || got[1].ContextMap()["left_out"] != nil {
			t.Errorf("the next second has %+v", got)
		}

		if c := transform.Meter(); c["logged"] != 5 || c["left_out"] != 97 {
			t.Errorf("counted %v", c)
		}
	})
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for want, options := range map[string]any{
		`"fatal" is no level; there are: debug, info, warn, error`: map[string]any{"level": "fatal"},
		`did you mean "key"?`: map[string]any{"fields": []any{"kye"}},
		"negative":            map[string]any{"per_second": -1},
	} {
		if err := plugins.Decode(options, &logger.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", options, err)
		}
	}

	for _, o := range []logger.Options{{Level: 3}, {Level: -2}, {PerSecond: -1}} {
		if _, err := logger.New(o, zap.NewNop()); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}

	if _, err := logger.New(logger.Options{}, nil); err == nil {
		t.Error("no logger is taken")
	}
}

func ExampleTransform() {
	transform, err := logger.New(logger.Options{Text: "seen"}, zap.NewExample())
	if err != nil {
		fmt.Println(err)

		return
	}

	err = transform.Transform(context.Background(), &pipeline.Message{Key: "us1000chhc"}, func(*pipeline.Message) error { return nil })
	fmt.Println(err)
	// Output:
	// {"level":"info","msg":"seen","key":"us1000chhc"}
	// <nil>
}
