package expression

import (
	"regexp"

	"github.com/expr-lang/expr/ast"
)

// eval evaluates a part of an expression. When it fails it keeps the error in the scope, and its value means nothing.
type eval func(*Scope) Value

// compiler makes closures of a tree that was checked.
type compiler struct {
	read   map[string]*path
	beyond bool // there is something that closures cannot do
}

func (c *compiler) compile(n ast.Node) eval {
	switch n := n.(type) {
	case *ast.NilNode:
		return constant(Value{})
	case *ast.BoolNode:
		return constant(ofBool(n.Value))
	case *ast.IntegerNode:
		return constant(ofInt(n.Value))
	case *ast.FloatNode:
		return constant(ofFloat(n.Value))
	case *ast.StringNode:
		return constant(ofText(n.Value))
	case *ast.IdentifierNode:
		if p := c.read[n.Value]; p != nil && p.root != "born" { // operators here know no times
			return lookup(p)
		}
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.ConditionalNode:
		return c.conditional(n)
	case *ast.BuiltinNode:
		if call := calls()[n.Name]; call != nil && len(n.Arguments) == 1 {
			of := c.compile(n.Arguments[0])

			return func(s *Scope) Value {
				v := of(s)
				if s.err != nil {
					return Value{}
				}

				return call(s, v)
			}
		}
	}

	c.beyond = true

	return nil
}

func constant(v Value) eval { return func(*Scope) Value { return v } }

func (c *compiler) unary(n *ast.UnaryNode) eval {
	of := c.compile(n.Node)

	switch n.Operator {
	case "!", "not":
		return func(s *Scope) Value { return ofBool(!truth(s, of(s))) }
	case "-":
		return func(s *Scope) Value {
			switch v := of(s); v.kind {
			case kindInt:
				return ofInt(-v.int())
			case kindFloat:
				return ofFloat(-v.float())
			default:
				return s.failText("- does not take " + v.describe())
			}
		}
	}

	c.beyond = true

	return nil
}

func (c *compiler) conditional(n *ast.ConditionalNode) eval {
	cond, then, otherwise := c.compile(n.Cond), c.compile(n.Exp1), c.compile(n.Exp2)

	return func(s *Scope) Value {
		switch yes := truth(s, cond(s)); {
		case s.err != nil:
			return Value{}
		case yes:
			return then(s)
		default:
			return otherwise(s)
		}
	}
}

func truth(s *Scope, v Value) bool {
	if v.kind != kindBool && s.err == nil {
		s.failText(v.describe() + " is where true or false should be")
	}

	return v.num != 0
}

func (c *compiler) binary(n *ast.BinaryNode) eval {
	switch n.Operator {
	case "in":
		return c.in(n)
	case "matches":
		return c.matches(n)
	}

	left, right := c.compile(n.Left), c.compile(n.Right)

	switch n.Operator {
	case "and", "&&":
		return func(s *Scope) Value {
			if !truth(s, left(s)) || s.err != nil {
				return ofBool(false)
			}

			return ofBool(truth(s, right(s)))
		}
	case "or", "||":
		return func(s *Scope) Value {
			if truth(s, left(s)) || s.err != nil {
				return ofBool(true)
			}

			return ofBool(truth(s, right(s)))
		}
	case "??":
		return func(s *Scope) Value {
			if v := left(s); v.kind != kindNil || s.err != nil {
				return v
			}

			return right(s)
		}
	}

	if compared := c.compare(n, left, right); compared != nil {
		return compared
	}

	operator := operators()[n.Operator]
	if operator == nil {
		c.beyond = true

		return nil
	}

	return func(s *Scope) Value {
		a := left(s)
		b := right(s)

		if s.err != nil {
			return Value{}
		}

		return operator(s, a, b)
	}
}

// compare compiles a comparison with a number or a text that stands in the expression, as most conditions are; nil says that it
// is something else.
func (c *compiler) compare(n *ast.BinaryNode, left, right eval) eval {
	switch n.Right.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if wanted := orders()[n.Operator]; wanted != 0 {
			return compareNumber(n.Operator, wanted, left, right(nil))
		}
	case *ast.StringNode:
		if n.Operator == "==" || n.Operator == "!=" {
			return equalText(n.Operator == "==", left, right(nil).text())
		}
	}

	return nil
}

func compareNumber(operator string, wanted order, left eval, limit Value) eval {
	x, _ := limit.number()

	return func(s *Scope) Value {
		v := left(s)

		switch {
		case s.err != nil:
			return Value{}
		case v.kind == kindFloat:
			return ofBool(orderOf(v.float(), x)&wanted != 0)
		default:
			return ofBool(compare(s, operator, v, limit)&wanted != 0)
		}
	}
}

func equalText(wanted bool, left eval, text string) eval {
	return func(s *Scope) Value {
		v := left(s)

		return ofBool((v.kind == kindText && v.text() == text) == wanted)
	}
}

// in compiles a search in a list of constants.
func (c *compiler) in(n *ast.BinaryNode) eval {
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		c.beyond = true

		return nil
	}

	left := c.compile(n.Left)
	values := make([]Value, len(list.Nodes))

	for i, element := range list.Nodes {
		switch element.(type) {
		case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode, *ast.BoolNode:
			values[i] = c.compile(element)(nil)
		default:
			c.beyond = true
		}
	}

	return func(s *Scope) Value {
		v := left(s)

		for _, other := range values {
			if equal(v, other) {
				return ofBool(true)
			}
		}

		return ofBool(false)
	}
}

// matches compiles a match with a constant pattern.
func (c *compiler) matches(n *ast.BinaryNode) eval {
	left := c.compile(n.Left)

	constant, ok := n.Right.(*ast.StringNode)
	if !ok {
		c.beyond = true

		return nil
	}

	pattern, err := regexp.Compile(constant.Value)
	if err != nil { // the checker has refused it before
		c.beyond = true

		return nil
	}

	return func(s *Scope) Value {
		v := left(s)

		switch {
		case s.err != nil || v.kind == kindNil:
			return ofBool(false)
		case v.kind != kindText:
			return s.failText("matches does not take " + v.describe())
		default:
			return ofBool(pattern.MatchString(v.text()))
		}
	}
}
