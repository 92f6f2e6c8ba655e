package value_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/internal/value"
)

func message() *pipeline.Message {
	return &pipeline.Message{
		ID: "i", Key: "k", Tag: "t", Topic: "q", Props: map[string]string{"a.b": "p"},
		Born:   time.Date(2026, 12, 31, 23, 59, 58, 0, time.FixedZone("west", -3600)),
		Body:   []byte(`{"mag": 6.40, "user": {"name": "x", "a \"b": true}, "list": [1, [null, "z"]], "big": 12345678901234567890}`),
		Origin: pipeline.Origin{Delivery: 2},
	}
}

func TestANameLeadsToAValue(t *testing.T) {
	t.Parallel()

	r := value.Of(message())

	for name, want := range map[string]string{
		"key": "k", "id": "i", "tag": "t", "topic": "q", "props.a.b": "p", "delivery": "2",
		"born": "2027-01-01T00:59:58Z", "day": "2027-01-01", "month": "2027-01", "hour": "2027-01-01T00",
		"body.mag": "6.40", "body.user.name": "x", `body.user["a \"b"]`: "true", "body.list[0]": "1", "body.list[1][1]": "z",
		"body.big": "12345678901234567890", "body.user": `{"name": "x", "a \"b": true}`, `body["user"].name`: "x",
		"body.none": "", "body.list[7]": "", "body.mag.deeper": "", "body.list.name": "", "body.list[1][0]": "", "body.user[0]": "",
	} {
		v, err := value.Parse(name)
		if err != nil {
			t.Fatal(err)
		}

		got, err := r.Text(v)
		if got != want || (want == "") != errors.Is(err, value.ErrMissing) || v.String() != name {
			t.Errorf("%s is %q, %v, want %q", name, got, err, want)
		}
	}

	if got, ok, err := r.Lookup(value.Value{}); ok || err != nil {
		t.Errorf("nothing is %q, %v", got, err)
	}

	for _, body := range []string{"", "{", "1 2", "\xff"} {
		v, _ := value.Parse("body.a")
		if _, err := value.Of(&pipeline.Message{Body: []byte(body)}).Text(v); err == nil || errors.Is(err, value.ErrMissing) {
			t.Errorf("in %q: %v", body, err)
		}
	}
}

func TestWrongNamesAreExplained(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"magnitude": "reached as body.magnitude", "kye": `did you mean "key"?`, "": "unknown name", "body.": "no name behind a dot",
		"body[": "is no step", "body[x]": "is no step", "body[-1]": "is no step", `body["a]`: "is not closed", "body..a": "behind a dot",
		"bodyguard": "unknown name", "body[99999999999]": "is no step", "body[0]x": "is no step", "props.": "unknown name",
	} {
		if _, err := value.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}

	for text, want := range map[string]string{"{key": "is not closed", "key}": "closes nothing", "{}": "unknown name", "{kye}": `mean "key"`} {
		if err := new(value.Template).UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestATemplateIsATextWithValues(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"": "", "plain": "plain", "{key}": "k", "a/{ key }/{body.mag}.x": "a/k/6.40.x", "{{{key}}}": "{k}", `{body.user["name"]}`: "x",
	} {
		tmpl, err := value.ParseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}

		got, err := tmpl.Text(value.Of(message()), nil)
		if err != nil || got != want {
			t.Errorf("%q is %q, %v, want %q", text, got, err, want)
		}

		if fixed, ok := tmpl.Fixed(); ok != !strings.Contains(text, "key") && ok != !strings.Contains(text, "body") || ok && fixed != want {
			t.Errorf("%q is fixed: %t, %q", text, ok, fixed)
		}

		if !strings.HasPrefix(want, tmpl.Prefix()) {
			t.Errorf("%q begins with %q", want, tmpl.Prefix())
		}
	}

	tmpl, _ := value.ParseTemplate("{body.none}")
	if _, err := tmpl.Text(value.Of(message()), nil); !errors.Is(err, value.ErrMissing) {
		t.Errorf("a missing value: %v", err)
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{key}", "a{{b}}{body.list[1][0]}", `{body["x"].y}`, "{", "}", "{body[}"} {
		f.Add(seed, "v/../x")
	}

	f.Fuzz(func(t *testing.T, text, key string) {
		tmpl, err := value.ParseTemplate(text)
		if err != nil {
			return
		}

		m := message()
		m.Key = key

		got, err := tmpl.Text(value.Of(m), url.PathEscape)
		if err == nil && !strings.HasPrefix(got, tmpl.Prefix()) {
			t.Errorf("%q makes %q", text, got)
		}
	})
}

func ExampleTemplate() {
	var t value.Template

	fmt.Println(t.UnmarshalText([]byte("quakes/{body.region}/{key}")))
	fmt.Println(t.Text(value.Of(&pipeline.Message{Key: "us1", Body: []byte(`{"region":"a b"}`)}), url.PathEscape))
	// Output:
	// <nil>
	// quakes/a%20b/us1 <nil>
}
