package jobfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
)

const head = "name: quakes\nbroker: { embedded: ./data }\nsource: { topic: quakes }\n"

func TestAJobIsWhatItsFileSays(t *testing.T) {
	t.Parallel()

	src, err := os.ReadFile("testdata/good/quakes.yaml")
	if err != nil {
		t.Fatal(err)
	}

	f, err := parse(t, string(src))
	if err != nil {
		t.Fatal(err)
	}

	job, err := f.Jobs[0].BuildWith(plugins.Env{Publisher: noPublisher{}}, func(u jobfile.SinkUse) pipeline.Sink {
		if u.Plugin == "file" {
			return pipeline.Discard
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	plan, err := pipeline.Compile(job)
	if err != nil {
		t.Fatal(err)
	}

	got := plan.Job
	if got.Name != "quakes" || got.Source.Group != "quakes-v2" || !got.Source.Start.IsFirst() ||
		!reflect.DeepEqual(got.Source.Topics, []string{"quakes"}) {
		t.Errorf("name and source: %q %+v", got.Name, got.Source)
	}

	if want := (pipeline.RetryPolicy{
		Attempts: 5, Delays: []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute}, DeadLetterTopic: "quakes-dead",
	}); !reflect.DeepEqual(got.Retry, want) {
		t.Errorf("retry: %+v", got.Retry)
	}

	classify, archive := got.Channels[0], got.Channels[2]
	if classify.Name != "classify" || classify.Lanes != 4 || classify.Order != pipeline.OrderByKey ||
		classify.Timeout != 30*time.Second {
		t.Errorf("classify: %+v", classify)
	}

	var names []string
	for _, s := range classify.Stages {
		names = append(names, s.Name)
	}

	if want := []string{"upper", "again", "upper-2"}; !reflect.DeepEqual(names, want) {
		t.Errorf("stages: %q", names)
	}

	if archive.Batch != (pipeline.Batch{Messages: 500, Bytes: 1 << 20, Every: 2 * time.Second}) || archive.Gather == nil {
		t.Errorf("archive: %+v", archive)
	}

	for tag, want := range map[string]bool{"major": true, "great": true, "minor": false} {
		if got := classify.Routes[0].When(&pipeline.Message{Tag: tag}); got != want {
			t.Errorf("tag %s goes to the alerts: %t", tag, got)
		}
	}

	if classify.Routes[1].When != nil || classify.Routes[1].To != "archive" {
		t.Errorf("the route to the archive is %+v", classify.Routes[1])
	}
}

type noPublisher struct{}

func (noPublisher) Publish(_ context.Context, _ string, _ []*pipeline.Message) error { return nil }

func TestDocumentsAreJobsOfOneBroker(t *testing.T) {
	t.Parallel()

	src, err := os.ReadFile("testdata/good/several.yaml")
	if err != nil {
		t.Fatal(err)
	}

	f, err := parse(t, string(src))
	if err != nil {
		t.Fatal(err)
	}

	if len(f.Jobs) != 2 || f.Jobs[0].Name != "first" || f.Jobs[1].Name != "second" {
		t.Fatalf("%d jobs", len(f.Jobs))
	}

	want := jobfile.Broker{Embedded: &jobfile.Embedded{
		Dir: "./data", Topics: map[string]int{"a": 4, "b": 1}, NoSync: true,
		KeepFor: 7 * 24 * time.Hour, KeepBytes: 1 << 30, DropUnread: true,
	}}
	if !reflect.DeepEqual(f.Broker, want) {
		t.Errorf("broker: %+v", f.Broker.Embedded)
	}

	if sinks := f.Jobs[0].Sinks(); len(sinks) != 1 || sinks[0].Plugin != "topic" ||
		!reflect.DeepEqual(sinks[0].Options, map[string]any{"name": "eu-out"}) {
		t.Errorf("sinks: %+v", sinks)
	}
}

func TestVariablesTakeTheTypeOfTheirOption(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct{ stage, want string }{
		"a number for a number":  {"upper: { suffix: x, times: ${LANES} }", "AXXX"},
		"a number for a text":    {"upper: { suffix: ${LANES} }", "A3"},
		"a default":              {"upper: { suffix: '${NO_SUCH:-x}' }", "AX"},
		"an empty one":           {"upper: { suffix: '${EMPTY:-y}' }", "AY"},
		"with signs of brackets": {"upper: { suffix: ${NO_SUCH:-[a,b]}, times: 1 }", "A[A,B]"},
		"an escaped one":         {"upper: { suffix: $${LANES} }", "A${LANES}"},
		"in the main option":     {"upper: <${LANES}>", "A<3>"},
		"a secret of a file":     {"upper: ${file:secret.txt}", "AOPEN SESAME"},
		"not in what it holds":   {"upper: ${NO_SUCH:-$}{LANES}", "A${LANES}"},
		"not in comments":        {"upper # ${NO_SUCH}", "A"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f, err := parse(t, head+"channels:\n  a:\n    stages:\n      - "+c.stage+"\n    sink: discard\n")
			if err != nil {
				t.Fatal(err)
			}

			job, err := f.Jobs[0].Build(plugins.Env{})
			if err != nil {
				t.Fatal(err)
			}

			transform, err := job.Channels[0].Stages[0].New()
			if err != nil {
				t.Fatal(err)
			}

			got := ""

			err = transform.Transform(t.Context(), &pipeline.Message{Body: []byte("a")}, func(m *pipeline.Message) error {
				got = strings.ToUpper(string(m.Body))

				return nil
			})
			if err != nil || got != c.want {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func TestSecretsAreTakenOutOfWhatIsPrinted(t *testing.T) {
	t.Parallel()

	f, err := parse(t, head+`channels:
  a:
    stages:
      - upper: ${PASSWORD}
      - upper: ${file:secret.txt}
      - upper: ${PREFIX}
      - deep: { secret: 'in "the" file' }
    sink: discard
`)
	if err != nil {
		t.Fatal(err)
	}

	inJSON, err := json.Marshal(`in "the" file`)
	if err != nil {
		t.Fatal(err)
	}

	var b strings.Builder

	text := "hunter2, open sesame, eu, in \"the\" file, " + string(inJSON)
	if _, err := f.Redactor.Writer(&b).Write([]byte(text)); err != nil {
		t.Fatal(err)
	}

	if want := `***, ***, eu, ***, "***"`; b.String() != want {
		t.Errorf("got %s, want %s", b.String(), want)
	}
}

func TestBombsAreRefused(t *testing.T) {
	t.Parallel()

	var b strings.Builder

	b.WriteString(head + "x: &x0 [a,a,a,a,a,a,a,a,a,a]\n")

	for i := range 20 {
		fmt.Fprintf(&b, "x%d: &x%d [%s*x%d]\n", i+1, i+1, strings.Repeat(fmt.Sprintf("*x%d,", i), 9), i)
	}

	aliases := b.String()

	merges := head + "x: &x {" + strings.Repeat("k: 1, ", 500) + "}\ny:\n" + strings.Repeat("  - <<: [*x,*x,*x,*x,*x,*x,*x]\n", 500)

	for name, c := range map[string]struct{ src, want string }{
		"aliases in options": {aliases + "channels: { a: { stages: [ { deep: { any: *x20 } } ], sink: discard } }\n", "aliases make more than"},
		"merges":             {strings.ReplaceAll(merges, "k: 1, ", ""), "unknown key"},
		"size":               {strings.Repeat("#\n", 200_000), "at most 262144 are read"},
		"words":              {strings.Repeat("a: b\n", 30_000), "more than 50000 words and signs"},
		"brackets":           {strings.Repeat("[", 40_000), "nested too deep"},
		"braces":             {strings.Repeat("{a: ", 10_000), "nested too deep"},
		"dashes":             {strings.Repeat("- ", 40_000), "nested too deep"},
		"anchors":            {strings.Repeat("&a ", 10_000), "nested too deep"},
		"a list of itself":   {head + "x: &x [*x]\n", "no anchor &x stands above"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, err := parse(t, c.src)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %.300v, want one with %q", err, c.want)
			}
		})
	}
}

func TestAtMostAHundredMistakesAreTold(t *testing.T) {
	t.Parallel()

	_, err := parse(t, head+strings.Repeat("x: 1\n", 300))

	wrong, ok := errors.AsType[*jobfile.Error](err)
	if !ok || len(wrong.Mistakes) != 100 || !strings.Contains(wrong.Mistakes[99].Problem, "more mistakes from here on") {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, folder := range []string{"good", "broken"} {
		for _, file := range files(f, folder, 2) {
			src, err := os.ReadFile(filepath.Clean(file))
			if err != nil {
				f.Fatal(err)
			}

			f.Add(src)
		}
	}

	r := registry(f)

	f.Fuzz(func(t *testing.T, src []byte) {
		file, err := jobfile.Parse("f", src, r, variables())
		if (file == nil) == (err == nil) {
			t.Fatal("neither a file nor a mistake, or both")
		}

		if err == nil {
			for _, job := range file.Jobs {
				discard := func(jobfile.SinkUse) pipeline.Sink { return pipeline.Discard }

				built, err := job.BuildWith(plugins.Env{}, discard)
				if err != nil {
					t.Fatalf("a file without mistakes does not build: %v", err)
				}

				if _, err := pipeline.Compile(built); err != nil {
					t.Fatalf("a file without mistakes does not compile: %v", err)
				}
			}

			return
		}

		wrong, ok := errors.AsType[*jobfile.Error](err)
		if !ok || len(wrong.Mistakes) == 0 {
			t.Fatalf("an error without mistakes: %v", err)
		}

		for _, m := range wrong.Mistakes {
			if m.Line < 1 || m.Column < 1 || m.Problem == "" {
				t.Fatalf("a mistake without a place or a text: %+v", m)
			}
		}
	})
}

func TestBreakerIsItsModeOrATable(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]pipeline.Breaker{
		"off":           {Off: true},
		"{ mode: off }": {Off: true},
		"on":            {},
		"{ ratio: 0.5, window: 10, pause: 2s, max_pause: 5m, patience: 8h }": {
			Ratio: 0.5, Window: 10, Pause: 2 * time.Second, MaxPause: 5 * time.Minute, Patience: 8 * time.Hour,
		},
	} {
		f, err := parse(t, head+"channels: { a: { breaker: "+text+", sink: discard } }")
		if err != nil {
			t.Errorf("%s: %v", text, err)

			continue
		}

		job, err := f.Jobs[0].Build(plugins.Env{})
		if err != nil {
			t.Errorf("%s: %v", text, err)

			continue
		}

		if got := job.Channels[0].Breaker; got != want {
			t.Errorf("%s: %+v, want %+v", text, got, want)
		}
	}
}
