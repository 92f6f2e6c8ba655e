package enrich_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/enrich"
)

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()

	for want, change := range map[string]map[string]any{
		"format: the name \"t.xls\" does not":  {"table": "t.xls"},
		`format: "xml" is none of auto, csv`:   {"format": "xml"},
		"column: is required for JSON":         {"table": "t.json"},
		"separator: is for CSV":                {"table": "t.json", "column": "id", "separator": ","},
		"separator: \"ab\" is more than one":   {"separator": "ab"},
		"cannot be one":                        {"separator": "\n"},
		`columns[1]: "a" is there twice`:       {"columns": []any{"a", "a"}},
		`into: "key" is no place; it is props`: {"into": "key"},
		`into: ".": there is no name behind a`: {"into": "body."},
		`types: are for a place in the body`:   {"types": map[string]any{"a": "number"}},
		`types: are for CSV; the values of`:    {"types": map[string]any{"a": "number"}, "table": "t.json", "column": "id", "into": "body"},
		`types.a: "int" is none of text, num`:  {"types": map[string]any{"a": "int"}, "into": "body"},
		`types: "b" is not among the columns`:  {"types": map[string]any{"b": "bool"}, "columns": []any{"a"}, "into": "body"},
		`into: "props." is no place`:           {"into": "props."},
		`into: "propst" is no place`:           {"into": "propst"},
		`missing: "skip" is none of pass, re`:  {"missing": "skip"},
		`key: unknown name "station"; there`:   {"key": "station"},
		"key: is required":                     {"key": nil},
	} {
		options := map[string]any{"table": "t.csv", "key": "key"}
		maps.Copy(options, change)
		maps.DeleteFunc(options, func(_ string, v any) bool { return v == nil })

		if err := plugins.Decode(options, &enrich.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := enrich.New(enrich.Options{}, nil); err == nil {
		t.Error("no options are no error")
	}
}
