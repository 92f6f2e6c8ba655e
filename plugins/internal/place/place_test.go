package place_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins/internal/place"
)

func TestATextLeadsToAPlace(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]struct {
		inBody     bool
		prop, path string
	}{
		"props": {}, "props.a": {prop: "a"}, "props.a.b": {prop: "a.b"},
		"body": {inBody: true}, "body.a.b[0]": {inBody: true, path: ".a.b[0]"}, `body["a b"]`: {inBody: true, path: `["a b"]`},
	} {
		p, err := place.Parse(text)
		if err != nil || p.IsZero() || p.String() != text || p.InBody() != want.inBody || p.Prop() != want.prop || p.Path().String() != want.path {
			t.Errorf("%s: %+v, %v", text, p, err)
		}
	}

	for text, want := range map[string]string{
		"": "is no place", "prop.a": "is no place", "props.": "is no place", "propsa": "is no place", "bodyx": "is no place",
		"key": "it is props, props.NAME, body or body.NAME", "body.": "no name behind a dot", "body[": "no step",
	} {
		if p, err := place.Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v, want %s", text, p, err, want)
		}
	}
}
