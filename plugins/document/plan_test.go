package document_test

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins/document"
)

func paths(tb testing.TB, texts ...string) []document.Path {
	tb.Helper()

	all := make([]document.Path, len(texts))
	for i, text := range texts {
		all[i] = path(tb, text)
	}

	return all
}

func plan(tb testing.TB, c document.Changes) *document.Plan {
	tb.Helper()

	p, err := document.NewPlan(c)
	if err != nil {
		tb.Fatal(err)
	}

	return p
}

func TestChangesAreSplicedIntoTheBody(t *testing.T) {
	t.Parallel()

	set := func(at ...string) document.Changes { return document.Changes{Set: paths(t, at...)} }
	remove := func(at ...string) document.Changes { return document.Changes{Remove: paths(t, at...)} }
	move := func(from, to string) document.Changes {
		return document.Changes{Move: map[string]document.Path{from: path(t, to)}}
	}

	for _, c := range []struct {
		name, body string
		changes    document.Changes
		want       string
	}{
		{"replace", `{"a": 1, "b" : 2}`, set("a"), `{"a": "v0", "b" : 2}`},
		{"add", `{"a":1}`, set("b", "c"), `{"a":1,"b":"v0","c":"v1"}`},
		{"add to nothing", `{ }`, set("b"), `{"b":"v0"}`},
		{"below", `{"a":{"b":{"c":1}},"z":0}`, set("a.b.c", "a.b.d"), `{"a":{"b":{"c":"v0","d":"v1"}},"z":0}`},
		{"make parents", `{"a":1}`, set("b.c.d", "b.e"), `{"a":1,"b":{"c":{"d":"v0"},"e":"v1"}}`},
		{"null is an empty object", `{"a":null}`, set("a.b"), `{"a":{"b":"v0"}}`},
		{"element", `{"a":[1, 2 ,3]}`, set("a[1]"), `{"a":[1, "v0" ,3]}`},
		{"of a list", `[{"a":1},{"a":2}]`, set("[1].a"), `[{"a":1},{"a":"v0"}]`},
		{"remove first", `{"a":1, "b":2}`, remove("a"), `{"b":2}`},
		{"remove last", `{"a":1, "b":2}`, remove("b"), `{"a":1}`},
		{"remove all", `{"a":1, "b":2}`, remove("a", "b"), `{}`},
		{"remove the middle", `{"a":1, "b":2, "c":3, "d":4}`, remove("b"), `{"a":1,"c":3, "d":4}`},
		{"remove an element", `{"a":[1, 2, 3]}`, remove("a[0]", "a[2]"), `{"a":[2]}`},
		{"remove below", `{"a":{"b":1,"c":2}}`, remove("a.b"), `{"a":{"c":2}}`},
		{"remove what is not there", `{"a":1}`, remove("b", "a.b.c"), `{"a":1}`},
		{"remove each of two", `{"a":1,"b":2,"a":3}`, remove("a"), `{"b":2}`},
		{"replace each of two", `{"a":1,"b":2,"a":3}`, set("a"), `{"a":"v0","b":2}`},
		{"an escaped name", `{"\u0061":1}`, set("a"), `{"\u0061":"v0"}`},
		{"rename", `{"a":1,"b":2}`, move("a", "c"), `{"b":2,"c":1}`},
		{"rename over", `{"a":1,"b":2}`, move("a", "b"), `{"b":1}`},
		{"move", `{"u":{"id":7,"n":1}}`, move("u.id", "id"), `{"u":{"n":1},"id":7}`},
		{"move nothing", `{"b":2}`, move("a", "b"), `{"b":2}`},
		{"keep", `{"a":1,"b":{"c":2,"d":3},"e":4}`, document.Changes{Keep: paths(t, "b.c", "e", "f")}, `{"b":{"c":2},"e":4}`},
		{"keep and set", `{"a":1,"b":2}`, document.Changes{Keep: paths(t, "b"), Set: paths(t, "c")}, `{"c":"v0","b":2}`},
		{"a name to be quoted", `{}`, set(`["a \"b\""]`), `{"a \"b\"":"v0"}`},
		{"numbers", `{"a":12345678901234567890.10,"b":1}`, set("b"), `{"a":12345678901234567890.10,"b":"v0"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()

			p := plan(t, c.changes)

			got, err := p.Apply(parse(t, c.body), values(len(c.changes.Set)))
			if err != nil {
				t.Fatal(err)
			}

			if string(got.Source()) != c.want {
				t.Errorf("%s became %s, want %s", c.body, got.Source(), c.want)
			}

			checkIndex(t, got)
		})
	}
}

func values(n int) [][]byte {
	all := make([][]byte, n)
	for i := range all {
		all[i] = []byte{'"', 'v', byte('0' + i), '"'}
	}

	return all
}

// checkIndex holds the index that a change made against one from a new parse.
func checkIndex(tb testing.TB, d *document.Document) {
	tb.Helper()

	fresh, err := document.Parse(d.Source())
	if err != nil {
		tb.Fatalf("%s: %v", d.Source(), err)
	}

	if got, want := document.Index(d), document.Index(fresh); !slices.Equal(got, want) {
		tb.Errorf("the index of %s is %q, want %q", d.Source(), got, want)
	}
}

func TestAPlaceThatCannotBeThereIsToldByItsName(t *testing.T) {
	t.Parallel()

	for at, want := range map[string]string{
		"a.b": "a is a number, not an object", "l.x": "l is a list, not an object", "l[2]": "l[2] is missing, not in a list of 2",
		"o[0]": "o is an object, not a list", "x[0]": "x is missing, not a list", "[0]": "the body is an object, not a list",
	} {
		_, err := plan(t, document.Changes{Set: paths(t, at)}).Apply(parse(t, `{"a":1,"l":[1,2],"o":{}}`), values(1))
		if _, ok := errors.AsType[*document.ShapeError](err); !ok || err.Error() != want {
			t.Errorf("setting %s fails with %v, want %s", at, err, want)
		}
	}
}

func TestChangesThatMeetAreRefused(t *testing.T) {
	t.Parallel()

	for want, c := range map[string]document.Changes{
		"a is changed twice":                                        {Set: paths(t, "a"), Remove: paths(t, "a")},
		"a.b is changed twice: it is part of a":                     {Set: paths(t, "a", "a.b")},
		"a is changed twice: it is above a.b.c":                     {Set: paths(t, "a.b.c", "a")},
		"a is taken for a list here and for an object there":        {Set: paths(t, "a[0]", "a.b")},
		"the whole body cannot be changed here; name a field of it": {Set: paths(t, "")},
	} {
		if _, err := document.NewPlan(c); err == nil || err.Error() != want {
			t.Errorf("it fails with %v, want %s", err, want)
		}
	}
}

// FuzzPlan holds changes against a model that works on decoded values.
func FuzzPlan(f *testing.F) {
	f.Add(`{"a":1,"b":{"c":[1,2,{"d":null}]},"e":"x"}`, "b.c[1] a z.y", "e", "b.c[2] q")
	f.Add(`{"a":1,"a":2}`, "b", "a", "")
	f.Add(` [ {"a" : 1 } , 2 ] `, "[0].b", "[1]", "")

	f.Fuzz(func(t *testing.T, body, set, remove, move string) {
		d, err := document.Parse([]byte(body))
		if err != nil {
			return
		}

		c := document.Changes{Move: map[string]document.Path{}}

		for _, list := range []struct {
			text string
			into *[]document.Path
		}{{set, &c.Set}, {remove, &c.Remove}} {
			for text := range strings.FieldsSeq(list.text) {
				p, err := document.ParsePath(text)
				if err != nil {
					return
				}

				*list.into = append(*list.into, p)
			}
		}

		if from, to, ok := strings.Cut(move, " "); ok {
			p, err := document.ParsePath(to)
			if err != nil {
				return
			}

			c.Move[from] = p
		}

		p, err := document.NewPlan(c)
		if err != nil || len(c.Set) > 10 {
			return
		}

		got, err := p.Apply(d, values(len(c.Set)))
		if err != nil {
			return
		}

		checkIndex(t, got)

		want := d.Root().Any()
		if hasTwice(body) {
			return
		}

		want = model(t, d, want, c)
		if !reflect.DeepEqual(got.Root().Any(), want) {
			t.Errorf("%s became %s, want %v", body, got.Source(), want)
		}
	})
}

// hasTwice reports whether an object may have a name twice, which the model cannot hold.
func hasTwice(body string) bool {
	var a any
	if json.Unmarshal([]byte(body), &a) != nil {
		return true
	}

	compact, _ := json.Marshal(a)

	return strings.Count(string(compact), ":") != strings.Count(body, ":") || strings.Contains(body, `\`)
}

func model(tb testing.TB, d *document.Document, doc any, c document.Changes) any {
	tb.Helper()

	type change struct {
		path  string
		value any
	}

	var changes []change

	gone := &struct{}{}

	for _, p := range c.Remove {
		changes = append(changes, change{p.String(), gone})
	}

	for _, from := range slices.Sorted(maps.Keys(c.Move)) {
		if v := d.Get(path(tb, from)); v.Kind() != document.Missing {
			changes = append(changes, change{from, gone}, change{c.Move[from].String(), v.Any()})
		}
	}

	for i, p := range c.Set {
		changes = append(changes, change{p.String(), "v" + string(rune('0'+i))})
	}

	for _, c := range changes {
		doc = document.ModelPut(doc, path(tb, c.path), c.value, gone)
	}

	return document.ModelSweep(doc, gone)
}
