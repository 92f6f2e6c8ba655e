package expression_test

import (
	"strconv"
	"testing"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/vm"

	"github.com/millrace/millrace/plugins/expression"
)

// comparison is an expression, the same one over variables instead of fields, and its value.
type comparison struct{ name, text, plain, want string }

func comparisons() []comparison {
	return []comparison{
		{"condition", `body.mag >= 5`, `mag >= 5`, "true"},
		{"text", `body.s == "text"`, `s == "text"`, "true"},
		{
			"choice", `body.mag >= 6 ? "major" : body.mag >= 4 ? "moderate" : "minor"`,
			`mag >= 6 ? "major" : mag >= 4 ? "moderate" : "minor"`, "moderate",
		},
		{"arithmetic", `body.mag * 1.609 + body.n`, `mag * 1.609 + n`, "15.688600000000001"},
		{
			"logic", `body.t and (body.n in [1, 7] or not (body.s startsWith "x"))`,
			`t and (n in [1, 7] or not (s startsWith "x"))`, "true",
		},
	}
}

// BenchmarkClosures is what job files pay for an expression: the fields are fetched from the document, which is parsed already.
func BenchmarkClosures(b *testing.B) { benchmark(b, expression.Parse) }

// BenchmarkMachine is what they would pay if expr-lang's machine ran it, and do pay where it must.
func BenchmarkMachine(b *testing.B) { benchmark(b, expression.ParseSlow) }

func benchmark(b *testing.B, parse func(string) (expression.Expression, error)) {
	b.Helper()

	for _, c := range comparisons() {
		b.Run(c.name, func(b *testing.B) {
			e, err := parse(c.text)
			if err != nil {
				b.Fatal(err)
			}

			var (
				s expression.Scope
				v expression.Value
			)

			m := message()

			b.ReportAllocs()

			for b.Loop() {
				s.Reset(m)

				if v, err = e.Eval(&s); err != nil {
					b.Fatal(err)
				}
			}

			if got, _ := v.Text(); got != c.want {
				b.Errorf("%s is %s, want %s", c.text, got, c.want)
			}
		})
	}
}

// BenchmarkMachineAlone is expr-lang's machine at its best: the variables have types and are there already, nothing is fetched.
func BenchmarkMachineAlone(b *testing.B) {
	type variables struct {
		Mag float64 `expr:"mag"`
		N   int     `expr:"n"`
		S   string  `expr:"s"`
		T   bool    `expr:"t"`
	}

	for _, c := range comparisons() {
		b.Run(c.name, func(b *testing.B) {
			program, err := expr.Compile(c.plain, expr.Env(variables{}))
			if err != nil {
				b.Fatal(err)
			}

			var (
				machine vm.VM
				env     = &variables{Mag: 5.4, N: 7, S: "text", T: true}
				v       any
			)

			b.ReportAllocs()

			for b.Loop() {
				if v, err = machine.Run(program, env); err != nil {
					b.Fatal(err)
				}
			}

			if got := plain(v); got != c.want {
				b.Errorf("%s is %s, want %s", c.plain, got, c.want)
			}
		})
	}
}

func plain(v any) string {
	switch v := v.(type) {
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		s, _ := v.(string)

		return s
	}
}
