package plugins_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

type colour string

func (colour) OptionType() (name string, values []string) { return "text", []string{"red", "blue"} }

type shade struct {
	Colour colour `default:"red" help:"Which one." option:"colour,main"`
	Depth  int    `default:"3"   option:"depth"`
}

type paint struct {
	Coats   uint8             `default:"2"               option:"coats"`
	Dry     plugins.Duration  `default:"1h"              option:"dry"`
	Gloss   bool              `default:"true"            option:"gloss"`
	Rate    float64           `default:"0.5"             option:"rate"`
	Base    shade             `option:"base"`
	Shades  []shade           `option:"shades"`
	Labels  map[string]string `option:"labels"`
	Extra   any               `option:"extra"`
	Brushes int               `option:"brushes,required"`
}

func (p *paint) Validate() error {
	if p.Coats > 3 && p.Gloss {
		return &plugins.OptionsError{Mistakes: []plugins.Mistake{{Path: "coats", Problem: "more than 3 do not shine"}}}
	}

	if p.Brushes == 13 {
		return errors.New("13 brushes bring bad luck")
	}

	return nil
}

func TestWhatIsNotGivenGetsItsDefault(t *testing.T) {
	t.Parallel()

	var got paint

	err := plugins.Decode(map[string]any{
		"brushes": 1, "gloss": false, "extra": []any{"x"}, "shades": []any{"blue", map[string]any{"depth": 9}},
	}, &got)
	want := paint{
		Coats: 2, Dry: plugins.Duration(time.Hour), Rate: 0.5, Base: shade{Colour: "red", Depth: 3},
		Shades: []shade{{Colour: "blue", Depth: 3}, {Colour: "red", Depth: 9}}, Extra: []any{"x"}, Brushes: 1,
	}

	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
}

func TestTheMainOptionMayStandAlone(t *testing.T) {
	t.Parallel()

	var got shade
	if err := plugins.Decode("blue", &got); err != nil || got != (shade{Colour: "blue", Depth: 3}) {
		t.Errorf("got %+v, %v", got, err)
	}

	for want, err := range map[string]error{
		"colour: is the number 3, should be text":                plugins.Decode(3, &got),
		`is the text "blue", should be options`:                  plugins.Decode("blue", &paint{}),
		"coats: more than 3 do not shine":                        plugins.Decode(map[string]any{"coats": 4, "brushes": 1}, &paint{}),
		"13 brushes bring bad luck":                              plugins.Decode(map[string]any{"brushes": 13}, &paint{}),
		"base.colour: is the truth value true, should be text":   plugins.Decode(map[string]any{"base": true, "brushes": 1}, &paint{}),
		"shades[0].depth: is the text \"x\", should be a number": plugins.Decode(shaded("x"), &paint{}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func shaded(depth any) map[string]any {
	return map[string]any{"brushes": 1, "shades": []any{map[string]any{"depth": depth}}}
}

func TestAPluginDescribesItsOptions(t *testing.T) {
	t.Parallel()

	var r plugins.Registry

	doc := plugins.Doc{Summary: "Paints."}

	err := errors.Join(
		plugins.AddSink(&r, "paint", doc, func(plugins.Env, paint) (pipeline.Sink, error) { return pipeline.Discard, nil }),
		plugins.AddTransform(&r, "paint", doc, func(plugins.Env, shade) (pipeline.Transform, error) {
			return nil, errors.New("dry")
		}),
	)
	if err != nil {
		t.Fatal(err)
	}

	inner := []plugins.Option{
		{Name: "colour", Help: "Which one.", Type: "text", Values: []string{"red", "blue"}, Default: "red", Main: true},
		{Name: "depth", Type: "integer", Default: "3"},
	}
	want := []plugins.Description{
		{Doc: doc, Kind: plugins.Transform, Name: "paint", Options: inner},
		{Doc: doc, Kind: plugins.Sink, Name: "paint", Options: []plugins.Option{
			{Name: "coats", Type: "integer", Default: "2"},
			{Name: "dry", Type: "duration", Default: "1h"},
			{Name: "gloss", Type: "boolean", Default: "true"},
			{Name: "rate", Type: "number", Default: "0.5"},
			{Name: "base", Type: "options", Options: inner},
			{Name: "shades", Type: "options", List: true, Options: inner},
			{Name: "labels", Type: "text", Table: true},
			{Name: "extra", Type: "any"},
			{Name: "brushes", Type: "integer", Required: true},
		}},
	}

	if got := r.Find("paint"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

func TestImpossibleTagsAreRefused(t *testing.T) {
	t.Parallel()

	type twoMains struct {
		A string `option:"a,main"`
		B string `option:"b,main"`
	}

	type badFlag struct {
		A string `option:"a,mandatory"`
	}

	type badDefault struct {
		Inner []struct {
			A plugins.Size `default:"a lot" option:"a"`
		} `option:"inner"`
	}

	for want, err := range map[string]error{
		`plugins: sink "x": plugins_test.twoMains has more than one main option`: refused[twoMains](),
		`plugins: sink "x": option "a" has an unknown flag "mandatory"`:          refused[badFlag](),
		`plugins: sink "x": options are a struct, not a int`:                     refused[int](),
		`plugins: sink "x": a: "a lot" is no size; it is a whole number of bytes or has a unit, ` +
			`such as 64KiB or 1MiB`: refused[badDefault](),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}
}

func refused[O any]() error {
	return plugins.AddSink(&plugins.Registry{}, "x", plugins.Doc{}, func(plugins.Env, O) (pipeline.Sink, error) {
		return pipeline.Discard, nil
	})
}
