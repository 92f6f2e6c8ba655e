package expression

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// calls are the functions that closures call; all others need expr-lang's machine.
func calls() map[string]func(*Scope, Value) Value {
	return map[string]func(*Scope, Value) Value{
		"lower": textCall("lower", strings.ToLower),
		"upper": textCall("upper", strings.ToUpper),
		"trim":  textCall("trim", strings.TrimSpace),
		"round": roundCall("round", math.Round),
		"floor": roundCall("floor", math.Floor),
		"ceil":  roundCall("ceil", math.Ceil),
		"abs":   abs, "int": toInt, "float": toFloat, "len": length, "string": toText,
	}
}

func refuseCall(s *Scope, name string, v Value) Value {
	return s.failText(name + " does not take " + v.describe())
}

func textCall(name string, f func(string) string) func(*Scope, Value) Value {
	return func(s *Scope, v Value) Value {
		if v.kind != kindText {
			return refuseCall(s, name, v)
		}

		return ofText(f(v.text()))
	}
}

func roundCall(name string, f func(float64) float64) func(*Scope, Value) Value {
	return func(s *Scope, v Value) Value {
		x, ok := v.number()
		if !ok {
			return refuseCall(s, name, v)
		}

		return ofFloat(f(x))
	}
}

func abs(s *Scope, v Value) Value {
	switch {
	case v.kind == kindInt && v.int() < 0:
		return ofInt(-v.int())
	case v.kind == kindFloat && v.float() < 0:
		return ofFloat(-v.float())
	case v.kind == kindInt || v.kind == kindFloat:
		return v
	default:
		return refuseCall(s, "abs", v)
	}
}

func toInt(s *Scope, v Value) Value {
	switch v.kind {
	case kindInt:
		return v
	case kindFloat:
		return ofInt(int(v.float()))
	case kindText:
		if n, err := strconv.Atoi(v.text()); err == nil {
			return ofInt(n)
		}
	}

	return refuseCall(s, "int", v)
}

func toFloat(s *Scope, v Value) Value {
	if x, ok := v.number(); ok {
		return ofFloat(x)
	}

	if v.kind == kindText {
		if x, err := strconv.ParseFloat(v.text(), 64); err == nil {
			return ofFloat(x)
		}
	}

	return refuseCall(s, "float", v)
}

func length(s *Scope, v Value) Value {
	if v.kind == kindText {
		return ofInt(utf8.RuneCountInString(v.text()))
	}

	switch all := v.Any().(type) {
	case []any:
		return ofInt(len(all))
	case map[string]any:
		return ofInt(len(all))
	case map[string]string:
		return ofInt(len(all))
	default:
		return refuseCall(s, "len", v)
	}
}

func toText(_ *Scope, v Value) Value {
	if v.kind == kindText {
		return v
	}

	return ofText(fmt.Sprint(v.Any()))
}
