package enrich_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins/document"
)

const places = "id,name,height,open,note\nXA,\"Al \"\"A\"\"\",12.50,true,\nXB,Be,,,x\n"

// body sends a message through a lane and returns the body that it comes out with.
func body(tb testing.TB, l pipeline.Transform, text string) string {
	tb.Helper()

	var next pipelinetest.Recorder
	if err := l.Transform(tb.Context(), pipelinetest.Message(text), next.Emit); err != nil {
		tb.Fatal(err)
	}

	m := next.Messages[0]
	if d, ok := m.Memo().(*document.Document); !ok || !bytes.Equal(d.Source(), m.Body) {
		tb.Errorf("the stages behind have to parse the body again: they get %v", m.Memo())
	}

	return string(m.Body)
}

func TestColumnsGoIntoTheBody(t *testing.T) {
	t.Parallel()

	csv := map[string]any{"table": table(t, "places.csv", places).path}
	lines := map[string]any{"column": "id", "table": table(t, "places.json", `[
		{"id": "XA", "name": "Al", "height": 12.50, "big": 12345678901234567890, "at": {"lat": 1,
			"lon": [2, 3]}, "none": null},
		{"id": "XB", "late": true}
	]`).path}
	types := map[string]any{"height": "number", "open": "bool"}

	for _, c := range []struct {
		table    map[string]any
		options  map[string]any
		in, want string
	}{
		{
			csv,
			map[string]any{"into": "body", "types": types},
			`{"p":"XA","n":1.0}`, `{"p":"XA","n":1.0,"name":"Al \"A\"","height":12.50,"open":true,"note":""}`,
		},
		{csv, map[string]any{"into": "body", "types": types}, `{"p":"XB"}`, `{"p":"XB","name":"Be","note":"x"}`},
		{csv, map[string]any{"into": "body", "columns": []any{"height"}}, `{"p":"XA"}`, `{"p":"XA","height":"12.50"}`},
		{csv, map[string]any{"into": "body.place.of", "columns": []any{"name"}}, `{"p":"XB"}`, `{"p":"XB","place":{"of":{"name":"Be"}}}`},
		{
			csv,
			map[string]any{"into": "body.place", "columns": []any{"name", "height"}, "types": map[string]any{"height": "number"}},
			`{"p":"XB","place":{"name":"old","height":7,"kept":1}}`, `{"p":"XB","place":{"name":"Be","height":7,"kept":1}}`,
		},
		{
			lines,
			map[string]any{"into": "body"},
			`{"p":"XA"}`, `{"p":"XA","at":{"lat":1,"lon":[2,3]},"big":12345678901234567890,"height":12.50,"name":"Al"}`,
		},
		{lines, map[string]any{"into": "body.x"}, `{"p":"XB"}`, `{"p":"XB","x":{"late":true}}`},
		{lines, map[string]any{"into": "body", "columns": []any{"late", "none"}}, `{"p":"XA"}`, `{"p":"XA"}`},
		{csv, map[string]any{"into": "body"}, `{"p":"XC"}`, `{"p":"XC"}`},
	} {
		options := map[string]any{"key": "body.p"}
		for _, more := range []map[string]any{c.table, c.options} {
			maps.Copy(options, more)
		}

		// The columns of objects come in no order, so the fields that they make are compared sorted.
		if got := sorted(body(t, lane(t, options), c.in)); got != sorted(c.want) {
			t.Errorf("%v makes of %s\n%s, want\n%s", c.options, c.in, got, c.want)
		}
	}
}

// sorted is a body with the fields of its outermost object in order.
func sorted(text string) string {
	d, err := document.Parse([]byte(text))
	if err != nil {
		return err.Error()
	}

	plan, _ := document.NewPlan(document.Changes{Keep: []document.Path{
		document.Name("p"), document.Name("n"), document.Name("name"), document.Name("height"), document.Name("open"), document.Name("note"),
		document.Name("at"), document.Name("big"), document.Name("late"), document.Name("none"), document.Name("place"), document.Name("x"),
	}})
	next, _ := plan.Apply(d, nil)

	return string(next.Source())
}

func TestABodyWithoutAPlaceForColumnsIsRejected(t *testing.T) {
	t.Parallel()

	l := lane(t, map[string]any{"table": table(t, "places.csv", places).path, "key": "key", "into": "body.place"})

	for _, text := range []string{"no JSON", `[1]`, `{"place":1}`, `{"place":[]}`} {
		m := message("XA")
		m.Body = []byte(text)

		if err := l.Transform(t.Context(), m, (&pipelinetest.Recorder{}).Emit); !pipeline.IsRejected(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestACellThatIsNotOfItsTypeStopsTheStart(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"id,v\nXA,1\nXB,one\n":      `line 3: column "v": "one" is no number`,
		"id,v\nXA,\"\"\"1\"\"\"\n":  `line 2: column "v": "\"1\"" is no number`,
		"id,v\nXA,true\n":           `"true" is no number`,
		"id,v\nXA,01\n":             `"01" is no number`,
		"id,v\nXA,\"1,2\"\n":        `"1,2" is no number`,
		"id,w\nXA,1\n":              `types: there is no column "v" among`,
		"id,v\nXA, 1 \nXB,-2.5e3\n": "",
	} {
		_, err := source(t, map[string]any{
			"table": table(t, "t.csv", text).path, "into": "body", "types": map[string]any{"v": "number"},
		}, nil)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestAMessageKeepsItsColumnsWhenTheLaneGoesOn(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		f := table(t, "t.csv", "id,a,b\nXA,1,2\nXB,3,\n")
		l := lane(t, map[string]any{"table": f.path, "key": "body.p", "into": "body", "types": map[string]any{"b": "number"}})

		first := body(t, l, `{"p":"XA"}`)
		second := body(t, l, `{"p":"XB"}`)

		f.write(t, "id,b,c\nXA,,5\n") // and now other columns
		<-time.After(11 * time.Second)

		third := body(t, l, `{"p":"XA"}`)

		for got, want := range map[string]string{
			first: `{"p":"XA","a":"1","b":2}`, second: `{"p":"XB","a":"3"}`, third: `{"p":"XA","c":"5"}`,
		} {
			if got != want {
				t.Errorf("the body is %s, want %s", got, want)
			}
		}
	})
}
