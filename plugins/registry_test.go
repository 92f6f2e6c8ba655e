package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

type suffix struct {
	Text string `option:"text,required"`
}

func (s suffix) transform(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
	m.Body = append(append([]byte(nil), m.Body...), s.Text...)

	return emit(m)
}

func setup(t *testing.T) *plugins.Registry {
	t.Helper()

	var r plugins.Registry

	err := errors.Join(
		plugins.AddTransform(&r, "suffix", plugins.Doc{}, func(_ plugins.Env, s suffix) (pipeline.Transform, error) {
			return pipeline.TransformFunc(s.transform), nil
		}),
		plugins.AddSink(&r, "discard", plugins.Doc{}, func(plugins.Env, struct{}) (pipeline.Sink, error) { return pipeline.Discard, nil }),
		plugins.AddSink(&r, "broken", plugins.Doc{}, func(plugins.Env, struct{}) (pipeline.Sink, error) { return nil, errors.New("no power") }),
	)
	if err != nil {
		t.Fatal(err)
	}

	return &r
}

func TestAStageIsMadeWithItsOptions(t *testing.T) {
	t.Parallel()

	r := setup(t)
	options := map[string]any{"text": "!"}

	stage, err := r.Stage("shout", "suffix", options, plugins.Env{})
	if err != nil {
		t.Fatal(err)
	}

	options["text"] = "?"

	transform, err := stage.New()
	if err != nil {
		t.Fatal(err)
	}

	var got string

	err = transform.Transform(t.Context(), &pipeline.Message{Body: []byte("ha")}, func(m *pipeline.Message) error {
		got = string(m.Body)

		return nil
	})
	if err != nil || got != "ha!" || stage.Name != "shout" {
		t.Errorf("stage %q makes %q, %v", stage.Name, got, err)
	}
}

func TestMistakesAreNamedWhenAPluginIsAskedFor(t *testing.T) {
	t.Parallel()

	r := setup(t)

	for want, err := range map[string]error{
		`plugins: unknown transform "sufix"; did you mean "suffix"?`:                 stageError(r, "sufix", nil),
		`plugins: "discard" is a sink, not a transform`:                              stageError(r, "discard", nil),
		`plugins: transform "suffix": text: is required`:                             stageError(r, "suffix", nil),
		`plugins: unknown sink "kafka"; there are: broken, discard`:                  sinkError(r, "kafka"),
		`plugins: sink "broken": no power`:                                           sinkError(r, "broken"),
		`plugins: unknown sink "x"; there are none`:                                  sinkError(&plugins.Registry{}, "x"),
		`plugins: there is already a sink "discard"`:                                 add(r, "discard"),
		`plugins: a sink needs a name`:                                               add(r, ""),
		`plugins: transform "suffix": text: is the number 1, should be text`:         stageError(r, "suffix", 1),
		`plugins: transform "suffix": text: is the truth value true, should be text`: stageError(r, "suffix", true),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := r.Sink("discard", nil, plugins.Env{}); err != nil {
		t.Error(err)
	}
}

func stageError(r *plugins.Registry, plugin string, text any) error {
	options := map[string]any{"text": text}
	if text == nil {
		options = nil
	}

	_, err := r.Stage("s", plugin, options, plugins.Env{})

	return err
}

func sinkError(r *plugins.Registry, plugin string) error {
	_, err := r.Sink(plugin, nil, plugins.Env{})

	return err
}

func add(r *plugins.Registry, name string) error {
	return plugins.AddSink(r, name, plugins.Doc{}, func(plugins.Env, struct{}) (pipeline.Sink, error) { return pipeline.Discard, nil })
}

func ExampleRegistry() {
	type options struct {
		Limit plugins.Size `option:"limit"`
	}

	var r plugins.Registry

	_ = plugins.AddSink(&r, "discard", plugins.Doc{}, func(plugins.Env, options) (pipeline.Sink, error) { return pipeline.Discard, nil })

	_, err := r.Sink("discard", map[string]any{"limit": "a lot", "fsnc": "batch"}, plugins.Env{})
	fmt.Println(err)

	_, err = r.Sink("discrad", nil, plugins.Env{})
	fmt.Println(err)
	// Output:
	// plugins: sink "discard": fsnc: unknown option; there are: limit; limit: "a lot" is no size; it is a whole number of bytes or has a unit, such as 64KiB or 1MiB
	// plugins: unknown sink "discrad"; did you mean "discard"?
}
