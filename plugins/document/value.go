package document

import (
	"encoding/json"
	"slices"
	"strconv"
	"unsafe"
)

// Kind is what a value is.
type Kind uint8

// The kinds.
const (
	// Missing: nothing is there.
	Missing Kind = iota
	// Null is the value null.
	Null
	// Bool is true or false.
	Bool
	// Number is any number.
	Number
	// Text is a string.
	Text
	// List is an array.
	List
	// Object is an object.
	Object
)

// String returns the name of the kind as messages to people use it.
func (k Kind) String() string {
	return [...]string{"missing", "null", "a boolean", "a number", "a text", "a list", "an object"}[k]
}

// Value is a part of a document, where it stands. It shares the bytes of the body, and is valid as long as they are. The zero
// value is [Missing].
type Value struct{ raw []byte }

// Kind returns what the value is.
func (v Value) Kind() Kind {
	if len(v.raw) == 0 {
		return Missing
	}

	switch v.raw[0] {
	case '{':
		return Object
	case '[':
		return List
	case '"':
		return Text
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		return Number
	}
}

// Raw returns the value as it is written; nil for a missing one. It must not be written to.
func (v Value) Raw() []byte { return v.raw }

// Bool returns whether the value is true.
func (v Value) Bool() bool { return v.Kind() == Bool && v.raw[0] == 't' }

// Text returns the text of a [Text] without quotes and escapes, which shares the memory of the body where it has none. Of
// anything else it is how it is written.
func (v Value) Text() string {
	if v.Kind() != Text {
		return share(v.raw)
	}

	inner := v.raw[1 : len(v.raw)-1]
	if slices.Contains(inner, '\\') {
		return unescape(v.raw)
	}

	return share(inner)
}

// share returns bytes that nobody writes to any more as text, without a copy.
func share(b []byte) string {
	return unsafe.String(unsafe.SliceData(b), len(b)) //nolint:gosec // bodies are never written to: see [pipeline.Message]
}

// unescape decodes a checked string with its quotes.
func unescape(raw []byte) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return string(raw) // cannot be: the raw text was checked
	}

	return s
}

// Int returns the value of a number that is written as an integer and fits; ok is false for anything else.
func (v Value) Int() (n int64, ok bool) {
	digits := v.raw
	if len(digits) > 0 && digits[0] == '-' {
		digits = digits[1:]
	}

	if len(digits) == 0 || len(digits) > 19 {
		return 0, false
	}

	var u uint64

	for _, c := range digits {
		if c -= '0'; c > 9 {
			return 0, false
		}

		u = u*10 + uint64(c)
	}

	switch {
	case len(digits) < len(v.raw) && u <= 1<<63:
		return -int64(u), true
	case u < 1<<63:
		return int64(u), len(digits) == len(v.raw)
	default:
		return 0, false
	}
}

// Float returns the value of a number, which may be infinite when it is out of range; ok is false for anything else.
func (v Value) Float() (f float64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}

	if f, ok = shortDecimal(v.raw); !ok {
		f, _ = strconv.ParseFloat(share(v.raw), 64)
	}

	return f, true
}

// shortDecimal returns the value of a number of up to 15 digits without an exponent; ok is false for all others. It is the
// quotient of two integers that a float64 holds, and is rounded once, as it should be.
func shortDecimal(raw []byte) (f float64, ok bool) {
	const most = 15

	digits := raw
	if raw[0] == '-' {
		digits = raw[1:]
	}

	if len(digits) > most+len(".") {
		return 0, false
	}

	n, scale := int64(0), int64(0) // which stays 0 up to the point

	for _, c := range digits {
		switch {
		case c-'0' <= 9:
			n, scale = n*10+int64(c-'0'), scale*10
		case c == '.':
			scale = 1
		default:
			return 0, false
		}
	}

	switch {
	case n >= 1e15:
		return 0, false
	case scale > 0:
		f = float64(n) / float64(scale)
	default:
		f = float64(n)
	}

	if len(digits) < len(raw) {
		f = -f
	}

	return f, true
}

// Get returns what stands at a path below the value.
func (v Value) Get(p Path) Value { return v.get(p.steps) }

func (v Value) get(steps []step) Value {
	for i := range steps {
		if v = v.step(&steps[i]); len(v.raw) == 0 {
			break
		}
	}

	return v
}

func (v Value) step(s *step) Value {
	var found Value

	if s.index < 0 {
		if v.Kind() == Object {
			scan := scanner{text: v.raw}
			for m := range scan.members {
				if (m.mark == s.mark || m.mark == 0) && m.is(v.raw, s.name) {
					found = v.at(m.value)
				}
			}
		}

		return found
	}

	if v.Kind() == List {
		scan := scanner{text: v.raw}
		n := 0

		for e := range scan.elements {
			if n == s.index {
				return v.at(e)
			}

			n++
		}
	}

	return found
}

func (v Value) at(s span) Value { return Value{raw: v.raw[s.from:s.to:s.to]} }

// Any decodes the value as expressions want it: nil, a bool, an int where an integer is written that fits and a float64 for
// other numbers, a string, []any and map[string]any.
func (v Value) Any() any {
	switch v.Kind() {
	case Bool:
		return v.Bool()
	case Text:
		return v.Text()
	case Number:
		if n, ok := v.Int(); ok && int64(int(n)) == n {
			return int(n)
		}

		f, _ := v.Float()

		return f
	case List:
		list := []any{}

		scan := scanner{text: v.raw}
		for e := range scan.elements {
			list = append(list, v.at(e).Any())
		}

		return list
	case Object:
		object := map[string]any{}

		scan := scanner{text: v.raw}
		for m := range scan.members {
			object[Value{raw: v.raw[m.name.from:m.name.to]}.Text()] = v.at(m.value).Any()
		}

		return object
	case Missing, Null:
	}

	return nil
}
