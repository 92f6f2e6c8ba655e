package expression

import (
	"fmt"
	"math"
	"strconv"
	"unsafe"

	"github.com/expr-lang/expr/vm/runtime"

	"github.com/millrace/millrace/plugins/document"
)

// Value is the value of an expression. The zero value is nil.
//
// It is laid out like log/slog's: the compiler keeps no more than four words in registers, and values go through many hands.
type Value struct {
	kind kind
	num  uint64 // a bool, an int or a float, or how long a text is
	// any is the first byte of a text, or what is none of these: an int or a time of other code, a list, a map, or a
	// [document.Value] not yet decoded.
	any any
}

// firstByte is where a text begins.
type firstByte *byte

// kind is what a value is: a plain number, so that a switch may name only those that it is for.
type kind = uint8

const (
	kindNil kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindOther
)

func ofBool(b bool) Value {
	if b {
		return Value{kind: kindBool, num: 1}
	}

	return Value{kind: kindBool}
}

func ofInt(n int) Value       { return Value{kind: kindInt, num: uint64(int64(n))} }
func ofFloat(f float64) Value { return Value{kind: kindFloat, num: math.Float64bits(f)} }

func ofText(text string) Value {
	return Value{kind: kindText, num: uint64(len(text)), any: firstByte(unsafe.StringData(text))} //nolint:gosec // see text
}

// text returns the text, or the empty one for what is no text.
func (v Value) text() string {
	first, ok := v.any.(firstByte)
	if !ok {
		return ""
	}

	return unsafe.String(first, v.num) //nolint:gosec // both are as ofText got them
}

// of returns the value that a program gave.
func of(v any) Value {
	switch v := v.(type) {
	case nil:
		return Value{}
	case bool:
		return ofBool(v)
	case int:
		return ofInt(v)
	case float64:
		return ofFloat(v)
	case string:
		return ofText(v)
	case map[any]any: // of fromPairs, which JSON has no form for
		table := make(map[string]any, len(v))
		for name, value := range v {
			table[fmt.Sprint(name)] = value
		}

		return Value{kind: kindOther, any: table}
	default:
		return Value{kind: kindOther, any: v}
	}
}

func fromDocument(v document.Value) Value {
	switch v.Kind() {
	case document.Bool:
		return ofBool(v.Bool())
	case document.Number:
		if n, ok := v.Int(); ok && int64(int(n)) == n {
			return ofInt(int(n))
		}

		f, _ := v.Float()

		return ofFloat(f)
	case document.Text:
		return ofText(v.Text())
	case document.List, document.Object:
		return Value{kind: kindOther, any: v}
	case document.Missing, document.Null:
	}

	return Value{}
}

func (v Value) int() int       { return int(int64(v.num)) }
func (v Value) float() float64 { return math.Float64frombits(v.num) }

// number returns an int or a float as a float.
func (v Value) number() (f float64, ok bool) {
	switch v.kind {
	case kindInt:
		return float64(v.int()), true
	case kindFloat:
		return v.float(), true
	default:
		return 0, false
	}
}

// IsNil reports whether there is no value.
func (v Value) IsNil() bool { return v.kind == kindNil }

// Any returns the value: nil, a bool, an int, a float64, a string, or what else the expression made, such as a []any.
func (v Value) Any() any {
	switch v.kind {
	case kindNil:
		return nil
	case kindBool:
		return v.num != 0
	case kindInt:
		return v.int()
	case kindFloat:
		return v.float()
	case kindText:
		return v.text()
	default:
		if part, ok := v.any.(document.Value); ok {
			return part.Any()
		}

		return v.any
	}
}

// Text returns the value as text: a text as it is, all others as JSON; nil is the empty text. It fails for what JSON has no
// form for.
func (v Value) Text() (string, error) {
	switch v.kind {
	case kindNil:
		return "", nil
	case kindText:
		return v.text(), nil
	case kindInt:
		return strconv.Itoa(v.int()), nil
	default:
		text, err := v.AppendJSON(nil)

		return string(text), err
	}
}

// AppendJSON appends the value as JSON. It fails for what JSON has no form for.
func (v Value) AppendJSON(dst []byte) ([]byte, error) {
	switch v.kind {
	case kindNil:
		return append(dst, "null"...), nil
	case kindBool:
		return strconv.AppendBool(dst, v.num != 0), nil
	case kindInt:
		return strconv.AppendInt(dst, int64(v.num), 10), nil
	case kindFloat:
		return document.AppendFloat(dst, v.float()) //nolint:wrapcheck // says all
	case kindText:
		return document.AppendText(dst, v.text()), nil
	default:
		if part, ok := v.any.(document.Value); ok {
			return append(dst, part.Raw()...), nil
		}

		return document.AppendAny(dst, v.any) //nolint:wrapcheck // says all
	}
}

// describe names the value for a message to a person, shortly.
func (v Value) describe() string {
	switch v.kind {
	case kindNil:
		return "nil"
	case kindText:
		const most = 40
		if len(v.text()) > most {
			return fmt.Sprintf("a text of %d bytes", len(v.text()))
		}

		return strconv.Quote(v.text())
	case kindOther:
		if part, ok := v.any.(document.Value); ok {
			return part.Kind().String()
		}

		return fmt.Sprintf("a %T", v.any)
	default:
		return fmt.Sprint(v.Any())
	}
}

// equal compares as expr-lang does: numbers by value, all else by kind and value.
func equal(a, b Value) bool {
	if a.kind == kindOther || b.kind == kindOther {
		return runtime.Equal(a.Any(), b.Any())
	}

	if a.kind != b.kind {
		x, ok := a.number()
		y, also := b.number()

		return ok && also && x == y
	}

	if a.kind == kindFloat {
		return a.float() == b.float()
	}

	return a.num == b.num && a.text() == b.text()
}
