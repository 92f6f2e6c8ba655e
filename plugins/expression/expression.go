package expression

import (
	"encoding"
	"fmt"
	"strings"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/vm"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Expression is a compiled expression. It is safe for concurrent use. The zero value is none.
type Expression struct {
	text string
	code *code
}

// code is either closures or a program.
type code struct {
	eval    eval
	program *vm.Program
	reads   map[string]eval // what the program reads, by identifier
}

var (
	_ encoding.TextUnmarshaler = (*Expression)(nil)
	_ plugins.Typed            = Expression{}
)

// Parse compiles an expression. It fails for what is no expression, and for unknown names and types that do not fit.
func Parse(text string) (Expression, error) { return parse(text, nil, true) }

func parse(text string, more Names, closures bool, options ...expr.Option) (Expression, error) {
	tree, err := parser.Parse(text)
	if err != nil {
		return Expression{}, oneLine(err)
	}

	read, err := resolve(&tree.Node, more)
	if err != nil {
		return Expression{}, err
	}

	options = append(options, expr.Env(types(read, more)), expr.Patch(paths{known: make(map[string]*path), more: more}))

	program, err := expr.Compile(text, options...)
	if err != nil {
		return Expression{}, oneLine(err)
	}

	if closures {
		c := compiler{read: read}
		if eval := c.compile(tree.Node); !c.beyond {
			return Expression{text: text, code: &code{eval: eval}}, nil
		}
	}

	reads := make(map[string]eval, len(read))
	for identifier, p := range read {
		reads[identifier] = lookup(p)
	}

	return Expression{text: text, code: &code{program: program, reads: reads}}, nil
}

// OptionType says that it is an expression.
func (Expression) OptionType() (name string, values []string) { return "expression", nil }

// UnmarshalText compiles the text.
func (e *Expression) UnmarshalText(text []byte) error {
	parsed, err := Parse(string(text))
	if err == nil {
		*e = parsed
	}

	return err
}

// IsZero reports whether there is no expression.
func (e Expression) IsZero() bool { return e.code == nil }

// String returns the text.
func (e Expression) String() string { return e.text }

// Eval returns the value for the message of s. It fails when the expression needs a body that is no JSON, and when an operator
// or a function does not take a value that it gets. The value shares the memory of the body.
func (e Expression) Eval(s *Scope) (Value, error) {
	if e.code.eval == nil {
		return e.run(s)
	}

	v := e.code.eval(s)
	if s.err != nil {
		return Value{}, s.fault()
	}

	return v, nil
}

// run evaluates the program.
func (e Expression) run(s *Scope) (Value, error) {
	if s.env == nil {
		s.env = make(map[string]any)
	}

	for identifier, get := range e.code.reads {
		v := get(s)
		if s.err != nil {
			return Value{}, s.fault()
		}

		s.env[identifier] = v.Any()
	}

	got, err := vm.Run(e.code.program, s.env)
	if err != nil {
		return Value{}, oneLine(err)
	}

	return of(got), nil
}

// Condition is an expression that says yes or no.
type Condition struct{ Expression }

var (
	_ encoding.TextUnmarshaler = (*Condition)(nil)
	_ plugins.Typed            = Condition{}
)

// ParseCondition compiles a condition. It fails as [Parse] does, and for an expression that can be seen to give something else.
func ParseCondition(text string) (Condition, error) { return ParseConditionOn(text, nil) }

// ParseConditionOn compiles a condition as [ParseCondition] does, which may also use other names. They hide those of the message,
// and get their values by [Scope.Know].
func ParseConditionOn(text string, more Names) (Condition, error) {
	// Closures know only the types of messages.
	e, err := parse(text, more, len(more) == 0, expr.AsBool())
	if err != nil {
		if kind, ok := strings.CutPrefix(err.Error(), "expected bool, but got "); ok {
			err = fmt.Errorf("it gives a value of type %s, and should say true or false", kind)
		}
	}

	return Condition{e}, err
}

// UnmarshalText compiles the text.
func (c *Condition) UnmarshalText(text []byte) error {
	parsed, err := ParseCondition(string(text))
	if err == nil {
		*c = parsed
	}

	return err
}

// Holds reports whether the message of s meets the condition. It fails as [Expression.Eval] does, and when the value is neither
// true nor false.
func (c Condition) Holds(s *Scope) (bool, error) {
	v, err := c.Eval(s)
	if err != nil {
		return false, err
	}

	if v.kind != kindBool {
		return false, fmt.Errorf("%s is %s, not true or false", excerpt(c.text, 0, 0), v.describe())
	}

	return v.num != 0, nil
}

// Func returns the condition as a function of messages. It is safe for concurrent use.
func (c Condition) Func() func(*pipeline.Message) (bool, error) {
	scopes := sync.Pool{New: func() any { return new(Scope) }}

	return func(m *pipeline.Message) (bool, error) {
		s, _ := scopes.Get().(*Scope)
		defer scopes.Put(s)

		s.Reset(m)
		defer s.Reset(nil)

		return c.Holds(s)
	}
}
