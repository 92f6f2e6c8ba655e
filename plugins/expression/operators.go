package expression

import (
	"cmp"
	"strings"
)

// operator is an operator of two values.
type operator func(s *Scope, a, b Value) Value

// operators are those that need both of their values.
func operators() map[string]operator {
	all := map[string]operator{
		"==":         func(_ *Scope, a, b Value) Value { return ofBool(equal(a, b)) },
		"!=":         func(_ *Scope, a, b Value) Value { return ofBool(!equal(a, b)) },
		"+":          add,
		"-":          arithmetic("-", func(a, b int) int { return a - b }, func(a, b float64) float64 { return a - b }),
		"*":          arithmetic("*", func(a, b int) int { return a * b }, func(a, b float64) float64 { return a * b }),
		"/":          divide,
		"%":          modulo,
		"contains":   texts("contains", strings.Contains),
		"startsWith": texts("startsWith", strings.HasPrefix),
		"endsWith":   texts("endsWith", strings.HasSuffix),
	}

	for name, wanted := range orders() {
		all[name] = func(s *Scope, a, b Value) Value { return ofBool(compare(s, name, a, b)&wanted != 0) }
	}

	return all
}

// order is how one value is to another; those that cannot be compared, such as NaN, have none.
type order uint8

const (
	less order = 1 << iota
	same
	more
)

// orders are the operators that compare, with the orders for which they are true.
func orders() map[string]order {
	return map[string]order{"<": less, "<=": less | same, ">": more, ">=": more | same}
}

func orderOf[T cmp.Ordered](a, b T) order {
	switch {
	case a < b:
		return less
	case a > b:
		return more
	case a == b:
		return same
	default:
		return 0
	}
}

func compare(s *Scope, operator string, a, b Value) order {
	switch {
	case a.kind == kindInt && b.kind == kindInt:
		return orderOf(a.int(), b.int())
	case a.kind == kindText && b.kind == kindText:
		return orderOf(a.text(), b.text())
	}

	x, ok := a.number()
	y, also := b.number()

	if !ok || !also {
		refuse(s, operator, a, b)

		return 0
	}

	return orderOf(x, y)
}

// refuse fails with what an operator got.
func refuse(s *Scope, operator string, a, b Value) Value {
	problem := a.describe() + " " + operator + " " + b.describe() + " cannot be said"

	if a.kind == kindNil || b.kind == kindNil {
		problem += "; nil is what the message does not have, and (NAME ?? 0) stands for 0 then"
	}

	return s.failText(problem)
}

func add(s *Scope, a, b Value) Value {
	switch {
	case a.kind == kindInt && b.kind == kindInt:
		return ofInt(a.int() + b.int())
	case a.kind == kindText && b.kind == kindText:
		return ofText(a.text() + b.text())
	}

	x, ok := a.number()
	y, also := b.number()

	if !ok || !also {
		return refuse(s, "+", a, b)
	}

	return ofFloat(x + y)
}

func arithmetic(name string, ints func(a, b int) int, floats func(a, b float64) float64) operator {
	return func(s *Scope, a, b Value) Value {
		if a.kind == kindInt && b.kind == kindInt {
			return ofInt(ints(a.int(), b.int()))
		}

		x, ok := a.number()
		y, also := b.number()

		if !ok || !also {
			return refuse(s, name, a, b)
		}

		return ofFloat(floats(x, y))
	}
}

func divide(s *Scope, a, b Value) Value {
	x, ok := a.number()
	y, also := b.number()

	if !ok || !also {
		return refuse(s, "/", a, b)
	}

	return ofFloat(x / y)
}

func modulo(s *Scope, a, b Value) Value {
	switch {
	case a.kind != kindInt || b.kind != kindInt:
		return refuse(s, "%", a, b)
	case b.int() == 0:
		return s.failText("a division by zero: " + a.describe() + " % 0")
	default:
		return ofInt(a.int() % b.int())
	}
}

// texts is an operator of two texts, which is false when there is none.
func texts(name string, of func(a, b string) bool) operator {
	return func(s *Scope, a, b Value) Value {
		switch {
		case a.kind == kindNil || b.kind == kindNil:
			return ofBool(false)
		case a.kind != kindText || b.kind != kindText:
			return refuse(s, name, a, b)
		default:
			return ofBool(of(a.text(), b.text()))
		}
	}
}
