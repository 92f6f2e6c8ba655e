package wasm

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
)

func TestAModuleSeesMessagesAndSaysWhatBecomesOfThem(t *testing.T) {
	t.Parallel()

	lane := setup(t, modes(), Options{}, nil)

	m := pipelinetest.Message("fields")
	m.Key, m.Tag = "k", "t"
	m.SetProp("p", "v")
	m.SetProp("long", strings.Repeat("x", 1000))

	var next pipelinetest.Recorder

	for _, m := range []*pipeline.Message{
		m, pipelinetest.Message("drop"), pipelinetest.Message("pass major"), pipelinetest.Message("twice over"), pipelinetest.Message(""),
	} {
		if err := lane.Transform(t.Context(), m, next.Emit); err != nil {
			t.Fatal(err)
		}
	}

	if len(next.Messages) != 5 {
		t.Fatalf("%d outputs", len(next.Messages))
	}

	fields, passed, one, two, empty := next.Messages[0], next.Messages[1], next.Messages[2], next.Messages[3], next.Messages[4]
	if want := "message-0|k|t|test|v||1000"; string(fields.Body) != want || fields.Key != "k" || fields.Props["p"] != "v" {
		t.Errorf("the module sees %s, want %s; the message is %+v", fields.Body, want, fields)
	}

	if string(passed.Body) != "pass major" || passed.Tag != "major" {
		t.Errorf("the message that was passed is %+v", passed)
	}

	if string(one.Body) != "twice over" || one.ID != "message-0" || one.Tag != "" {
		t.Errorf("the first of two is %+v", one)
	}

	if string(two.Body) != "over" || two.ID != "i" || two.Key != "k" || two.Tag != "t" || two.Props["new"] != "n" || two.Origin != one.Origin {
		t.Errorf("the second of two is %+v", two)
	}

	if len(empty.Body) != 0 {
		t.Errorf("nothing became %q", empty.Body)
	}

	if c := lane.Meter(); c["messages"] != 5 || c["made"] != 5 || c["refused"] != 0 || c["starts"] != 1 || c["failures"] != 0 {
		t.Errorf("counted %v", c)
	}
}

func TestWhatTheModuleRefusesFailsAsItSays(t *testing.T) {
	t.Parallel()

	lane := setup(t, modes(), Options{}, nil)

	outs, err := work(t, lane, "fail f")
	if len(outs) != 0 || err == nil || err.Error() != "wasm: f" || pipeline.IsRejected(err) {
		t.Errorf("made %q, the failure is %v", outs, err)
	}

	if _, err := work(t, lane, "reject r"); err == nil || err.Error() != "wasm: r" || !pipeline.IsRejected(err) {
		t.Errorf("the rejection is %v", err)
	}

	_, err = work(t, lane, "later l")
	if delay, ok := pipeline.RetryDelay(err); !ok || delay != 1500*time.Millisecond {
		t.Errorf("the delay of %v is %s", err, delay)
	}

	if _, err := work(t, lane, "fail "); err == nil || err.Error() != "wasm: refused by the module" {
		t.Errorf("a failure without words is %v", err)
	}

	if outs, err := work(t, lane, "a"); err != nil || !slices.Equal(outs, []string{"a"}) {
		t.Errorf("after that, made %q, %v", outs, err)
	}

	if c := lane.Meter(); c["refused"] != 4 || c["starts"] != 1 || c["failures"] != 0 {
		t.Errorf("counted %v", c)
	}
}

// TestAModuleThatFailsIsReplaced has each fault fail its message, and nothing but its message.
func TestAModuleThatFailsIsReplaced(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		body, want string
		patience   time.Duration
	}{
		{"panic at once", "the module has trapped: unreachable: panic: at once", time.Minute},
		{"wrong", "the module has trapped: unreachable: panic: guest: no field topic", time.Minute},
		{"exit", "the module has ended with code 5", time.Minute},
		{"memory", "the module has trapped: unreachable: runtime: out of memory: cannot allocate", time.Minute},
		{"flood", "emit: it made more than 100 messages of one; the option most allows more", time.Minute},
		{"huge", "emit: it emitted more than 4194304 bytes of one message; the option output allows more", time.Minute},
		{"recursion", "the module has trapped: ", time.Minute},
		{"hang", "the module was stopped: context deadline exceeded", soon},
		{"sleep", "the module was stopped: context deadline exceeded", soon},
	} {
		t.Run(test.body, func(t *testing.T) {
			t.Parallel()

			lane := setup(t, modes(), Options{Memory: 16 << 20, Most: 100, Output: 4 << 20}, nil)
			if outs, err := work(t, lane, "a"); err != nil || !slices.Equal(outs, []string{"a"}) {
				t.Fatalf("made %q, %v", outs, err)
			}

			outs, err := workFor(t, lane, test.patience, test.body)
			if len(outs) != 0 || err == nil || !strings.HasPrefix(err.Error(), "wasm: "+test.want) || pipeline.IsRejected(err) {
				t.Errorf("made %d, the failure is %v, want %s", len(outs), err, test.want)
			}

			if outs, err := work(t, lane, "a"); err != nil || !slices.Equal(outs, []string{"a"}) {
				t.Errorf("after that, made %q, %v", outs, err)
			}

			if c := lane.Meter(); c["starts"] != 2 || c["failures"] != 1 || c["refused"] != 0 || c["messages"] != 3 {
				t.Errorf("counted %v", c)
			}
		})
	}
}

// TestCopiesCountAsOutput has a module hand on, again and again, a message to which it has given large properties.
func TestCopiesCountAsOutput(t *testing.T) {
	t.Parallel()

	lane := setup(t, modes(), Options{Most: 1 << 30, Output: 4 << 20}, nil)

	if _, err := work(t, lane, "multiply"); err == nil || !strings.Contains(err.Error(), "pass: it emitted more than 4194304 bytes") {
		t.Errorf("the failure is %v", err)
	}
}

func TestABodyThatIsLargerThanTheMemoryIsRejected(t *testing.T) {
	t.Parallel()

	lane := setup(t, modes(), Options{Memory: 16 << 20}, nil)

	if _, err := work(t, lane, strings.Repeat("x", 17<<20)); !pipeline.IsRejected(err) {
		t.Errorf("the failure is %v", err)
	}

	// This one is not, but together with what the module has already.
	if _, err := work(t, lane, strings.Repeat("x", 15<<20)); err == nil || !strings.Contains(err.Error(), "millrace_alloc: the module has trapped: ") {
		t.Errorf("the failure is %v", err)
	}

	if outs, err := work(t, lane, "a"); err != nil || !slices.Equal(outs, []string{"a"}) {
		t.Errorf("after that, made %q, %v", outs, err)
	}
}

func TestWhatTheModuleSaysIsLogged(t *testing.T) {
	t.Parallel()

	core, lines := observer.New(zap.InfoLevel)
	lane := setup(t, modes(), Options{}, zap.New(core))

	for _, body := range []string{"log one", "print two\nthree", "print " + strings.Repeat("x", 5000)} {
		if _, err := work(t, lane, body); err != nil {
			t.Error(err)
		}
	}

	var got []string
	for _, line := range lines.All() {
		got = append(got, line.Message)
	}

	want := []string{"one", "two", "three", strings.Repeat("x", 4096), strings.Repeat("x", 904)}
	if !slices.Equal(got, want) {
		t.Errorf("logged %.300q", got)
	}
}

func TestAModuleSeesOnlyWhatIsGranted(t *testing.T) {
	t.Setenv("WASM_TEST_SECRET", "s3cret")

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model"), []byte("weights"), 0o600); err != nil {
		t.Fatal(err)
	}

	lane := setup(t, modes(), Options{Env: map[string]string{"MODEL": "small"}, Dirs: map[string]string{"/models": dir}}, nil)

	for body, want := range map[string]string{
		"env MODEL": "small", "env WASM_TEST_SECRET": "", "env PATH": "", "read /models/model": "weights",
	} {
		if outs, err := work(t, lane, body); err != nil || !slices.Equal(outs, []string{want}) {
			t.Errorf("%s: %q, %v", body, outs, err)
		}
	}

	for _, body := range []string{
		"write /models/new", "write /models/model", "write /new", "read /models/../../etc/passwd", "read /etc/passwd",
		"read " + filepath.Join(dir, "model"), "dial 127.0.0.1:80",
	} {
		if outs, err := work(t, lane, body); err == nil {
			t.Errorf("%s: made %.100q", body, outs)
		}
	}

	if content, err := os.ReadFile(filepath.Join(dir, "model")); string(content) != "weights" {
		t.Errorf("the file is %q, %v", content, err)
	}
}

func TestLanesHaveInstancesOfTheirOwn(t *testing.T) {
	t.Parallel()

	one := setup(t, modes(), Options{}, nil)
	two := lane(t, one.module)

	for _, test := range []struct {
		lane *Transform
		want string
	}{{one, "1"}, {one, "2"}, {two, "1"}, {one, "3"}} {
		if outs, err := work(t, test.lane, "count"); err != nil || !slices.Equal(outs, []string{test.want}) {
			t.Errorf("counted %q, want %s, %v", outs, test.want, err)
		}
	}
}

func TestTheExampleClassifies(t *testing.T) {
	t.Parallel()

	lane := setup(t, example(), Options{}, nil)
	tagged := func(tag, body string) *pipeline.Message {
		m := pipelinetest.Message(body)
		m.Tag = tag

		return m
	}

	const major, minor = `{"type":"earthquake","mag":6.5}`, `{"type":"earthquake","mag":2}`

	pipelinetest.TestTransform(t, lane.module.Lane,
		pipelinetest.Case{Name: "major", In: pipelinetest.Message(major), Want: []*pipeline.Message{tagged("major", major)}},
		pipelinetest.Case{Name: "minor", In: pipelinetest.Message(minor), Want: []*pipeline.Message{tagged("minor", minor)}},
		pipelinetest.Case{Name: "filtered", In: pipelinetest.Message(`{"type":"quarry blast"}`)},
		pipelinetest.Case{Name: "rejected", In: pipelinetest.Message(`{"type"`), Fails: pipeline.IsRejected},
	)
}
