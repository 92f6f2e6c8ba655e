package jobtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// differences says how a message differs from what is expected of it, part by part. Only what is written is expected; the
// fields of a JSON body all are.
func differences(want jobfile.TestMessage, got *pipeline.Message) []string {
	var all []string

	text := func(what string, want *string, got string) {
		if want != nil && *want != got {
			all = append(all, fmt.Sprintf("%s: got %q, want %q", what, got, *want))
		}
	}

	if want.ID != "" {
		text("id", &want.ID, got.ID)
	}

	text("key", want.Key, got.Key)
	text("tag", want.Tag, got.Tag)

	for _, name := range slices.Sorted(maps.Keys(want.Props)) {
		value := want.Props[name]
		text("props."+name, &value, got.Props[name])
	}

	if want.Body == nil {
		return all
	}

	wantJSON, isWant := parsed(want.Body)
	gotJSON, isGot := parsed(got.Body)

	if isWant && isGot {
		return append(all, compare("body", wantJSON, gotJSON)...)
	}

	if !bytes.Equal(want.Body, got.Body) {
		all = append(all, fmt.Sprintf("body: got %s, want %s", excerpt(got.Body), excerpt(want.Body)))
	}

	return all
}

// parsed returns a body as JSON, with its numbers as they are written.
func parsed(body []byte) (any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()

	var v any
	if err := decoder.Decode(&v); err != nil || decoder.More() {
		return nil, false
	}

	return v, true
}

// compare returns the differences of two JSON documents, with the paths that lead to them.
func compare(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			return compareObjects(path, want, got)
		}
	case []any:
		if got, ok := got.([]any); ok && len(got) == len(want) {
			var all []string
			for i := range want {
				all = append(all, compare(path+"["+strconv.Itoa(i)+"]", want[i], got[i])...)
			}

			return all
		}
	case json.Number:
		if got, ok := got.(json.Number); ok && sameNumber(want, got) {
			return nil
		}
	default:
		if want == got {
			return nil
		}
	}

	return []string{fmt.Sprintf("%s: got %s, want %s", path, inJSON(got), inJSON(want))}
}

func compareObjects(path string, want, got map[string]any) []string {
	var all []string

	for _, name := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[name]; ok {
			all = append(all, compare(path+"."+name, want[name], value)...)
		} else {
			all = append(all, fmt.Sprintf("%s.%s: missing, want %s", path, name, inJSON(want[name])))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			all = append(all, fmt.Sprintf("%s.%s: got %s, which nobody expected", path, name, inJSON(got[name])))
		}
	}

	return all
}

// sameNumber compares numbers by what they are, not by how they are written: 4.0 is 4.
func sameNumber(a, b json.Number) bool {
	if a == b {
		return true
	}

	x, errX := a.Float64()
	y, errY := b.Float64()

	// Whole numbers that a float64 cannot hold differ when their texts do.
	const exact = 1 << 53

	return errX == nil && errY == nil && x == y && x < exact && x > -exact
}

func inJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}

	return excerpt(text)
}

// excerpt returns the first part of a long text.
func excerpt(text []byte) string {
	const longest = 300

	if json.Valid(text) {
		if r := []rune(string(text)); len(r) > longest {
			return string(r[:longest]) + "…"
		}

		return string(text)
	}

	if r := []rune(string(text)); len(r) > longest {
		return strconv.Quote(string(r[:longest])) + "…"
	}

	return strconv.Quote(string(text))
}

// shown describes a message that came out.
func shown(m *pipeline.Message) string {
	return described(m.Key, m.Tag, m.Body)
}

// shownExpected describes a message that should have come out.
func shownExpected(m jobfile.TestMessage) string {
	return described(value(m.Key), value(m.Tag), m.Body)
}

func described(key, tag string, body []byte) string {
	var parts []string

	if key != "" {
		parts = append(parts, fmt.Sprintf("key %q", key))
	}

	if tag != "" {
		parts = append(parts, fmt.Sprintf("tag %q", tag))
	}

	if body != nil {
		parts = append(parts, "body "+excerpt(body))
	}

	return strings.Join(parts, "  ")
}
