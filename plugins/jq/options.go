package jq

import (
	"encoding"
	"errors"
	"fmt"

	"github.com/itchyny/gojq"

	"github.com/millrace/millrace/plugins"
)

// Options say what to make of a body.
type Options struct {
	// Query is a jq program; it must be made by [Parse] or from text.
	Query Query `help:"A jq program; each of its results becomes a message." option:"query,main,required"`
	// Raw writes results that are texts as they are, without quotes.
	Raw bool `help:"Write results that are texts as they are, without quotes." option:"raw"`
	// Most is how many results a message may have; one that has more is rejected. 0 means 10,000.
	Most int `default:"10000" help:"How many results a message may have; one that has more is rejected." option:"most"`
}

// Validate refuses a negative limit.
func (o *Options) Validate() error {
	if o.Most < 0 {
		return errors.New("most is negative")
	}

	return nil
}

// Doc is what the plugin says of itself.
func Doc() plugins.Doc {
	return plugins.Doc{
		Summary: "Makes messages of JSON bodies by a jq program.",
		Text: "Each result of the program is the body of a copy of the message: no result filters it, and of several, each " +
			"gets the message's id, a slash and its number from 0. $id, $key, $tag, $topic and $props are what the message " +
			"has beside its body. A body that is no JSON, and an error of the program, reject the message. A program that " +
			"runs for too long ends with the channel's timeout. Programs see neither files nor environment, and numbers keep " +
			"all of their digits unless they are calculated with.",
		Example: `jq: 'select(.mag >= 4) | { mag, place, by: $key }'`,
		Metrics: []plugins.Metric{
			{Name: "results", Help: "Messages made."},
			{Name: "filtered", Help: "Messages without a result."},
		},
	}
}

// Query is a compiled program. It is safe for concurrent use. The zero value is none.
type Query struct {
	text string
	code *gojq.Code
}

var (
	_ encoding.TextUnmarshaler = (*Query)(nil)
	_ plugins.Typed            = Query{}
)

// Parse compiles a program.
func Parse(text string) (Query, error) {
	parsed, err := gojq.Parse(text)
	if err != nil {
		return Query{}, fmt.Errorf("is no jq program: %w", err)
	}

	code, err := gojq.Compile(parsed, gojq.WithVariables([]string{"$id", "$key", "$tag", "$topic", "$props"}))
	if err != nil {
		return Query{}, fmt.Errorf("is no jq program: %w", err)
	}

	return Query{text: text, code: code}, nil
}

// OptionType says that it is a program.
func (Query) OptionType() (name string, values []string) { return "jq program", nil }

// UnmarshalText compiles the program.
func (q *Query) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*q = parsed
	}

	return err
}

// String returns the program's text.
func (q Query) String() string { return q.text }
