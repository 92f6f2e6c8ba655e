package expression_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins/expression"
)

func TestAnErrorShowsTheLineThatItIsIn(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("1 + ", 50)

	for text, want := range map[string]string{
		"upper(body.mag)": `upper(body.mag): `,
		"{\n  a: body.s,\n  b: map(body.list, {# + 1})\n}\n": `… b: map(body.list, {# + 1}) …: invalid operation: `,
		"\n\n  upper(body.mag)\n\n":                          `upper(body.mag): `,
		"let x = body.mag;\n  upper(x)":                      `… upper(x): `,
		long + "len(map([body.s], {# + 1})) + " + long + "1": `len(map([body.s], {# + 1})) + 1 + 1`,
		"body.s +\n" + long + "1":                            `body.s + …: `,
		"(body.mag ?? 0) in [" + strings.Repeat(`"a", `, 50) + "body.s] ? upper(1.5) : upper(body.mag)": `…`,
	} {
		e, err := expression.Parse(text)
		if err != nil {
			continue // of a type that is seen to be wrong
		}

		var s expression.Scope

		s.Reset(message())

		_, err = e.Eval(&s)
		if err == nil {
			t.Errorf("%s does not fail", text)

			continue
		}

		got := e.Excerpt(err) + ": " + err.Error()
		if !strings.Contains(got, want) || strings.Contains(got, "\n") || len(got) > 250 {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
