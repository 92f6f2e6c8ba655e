package plugins

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/millrace/millrace/pipeline"
)

// Decode fills the struct that into points to from options, as they come out of JSON or YAML: nil for none, a map of names,
// or anything else for the main option alone.
//
// An exported field takes part when it has a tag `option:"name"`. After the name, "required" refuses options without it,
// and "main" makes it the one that may be given alone, in place of the map. A tag `default:"text"` is what a field gets
// that is not given and still zero; other fields that are not named keep their value. A tag `help:"text"` is for
// documentation.
//
// A field may be a string, a bool, a number, any, an [encoding.TextUnmarshaler] such as [Duration] and [Size], a struct, or a
// slice or a map (of string keys) of these. Nothing is converted silently: a number out of range, a fraction for a whole
// number and an unknown name are mistakes. A [Validator] is asked at the end.
// It fails with an [*OptionsError]; into is then filled in part.
func Decode(options, into any) error {
	to := reflect.ValueOf(into)
	if to.Kind() != reflect.Pointer || to.IsNil() || to.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("plugins: options decode into a pointer to a struct, not into %T", into)
	}

	var d decoder

	switch {
	case options != nil:
		d.options("", to.Elem(), options)
	default:
		d.fields("", to.Elem(), nil)
	}

	return d.err()
}

type decoder struct {
	mistakes []Mistake
}

func (d *decoder) err() error {
	if len(d.mistakes) == 0 {
		return nil
	}

	return &OptionsError{Mistakes: d.mistakes}
}

func (d *decoder) mistakef(path, format string, args ...any) {
	d.mistakes = append(d.mistakes, Mistake{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// options fills a struct from a map of its options, or from its main option alone.
func (d *decoder) options(path string, to reflect.Value, from any) {
	if m, ok := from.(map[string]any); ok {
		d.fields(path, to, m)

		return
	}

	for i := range to.NumField() {
		if t := tagOf(to.Type().Field(i)); t.main {
			d.fields(path, to, map[string]any{t.name: from})

			return
		}
	}

	d.mistakef(path, "is %s, should be options", describe(from))
}

// fields fills a struct.
func (d *decoder) fields(path string, to reflect.Value, from map[string]any) {
	fields := make(map[string]reflect.Value)
	before := len(d.mistakes)

	for i := range to.NumField() {
		t := tagOf(to.Type().Field(i))
		if t.name == "" {
			continue
		}

		fields[t.name] = to.Field(i)

		if _, given := from[t.name]; given {
			continue
		}

		if t.required {
			d.mistakef(join(path, t.name), "is required")
		} else {
			d.unset(join(path, t.name), to.Field(i), to.Type().Field(i).Tag.Get("default"))
		}
	}

	for _, name := range slices.Sorted(maps.Keys(from)) {
		if field, ok := fields[name]; ok {
			d.value(join(path, name), field, from[name])
		} else {
			d.mistakef(join(path, name), "unknown option; %s", pipeline.Suggest(name, slices.Sorted(maps.Keys(fields))))
		}
	}

	if len(d.mistakes) == before {
		d.validate(path, to)
	}
}

// unset gives a field that no option names its default.
func (d *decoder) unset(path string, to reflect.Value, text string) {
	_, isText := reflect.TypeAssert[encoding.TextUnmarshaler](to.Addr())

	switch {
	case to.Kind() == reflect.Struct && !isText:
		d.defaults(path, to)
	case text == "" || !to.IsZero():
	case to.Kind() == reflect.Bool:
		d.value(path, to, text == "true")
	case !isText && (to.CanInt() || to.CanUint() || to.CanFloat()):
		d.value(path, to, json.Number(text))
	default:
		d.value(path, to, text)
	}
}

// defaults gives the fields of a struct that nobody has filled their defaults.
func (d *decoder) defaults(path string, to reflect.Value) {
	for i := range to.NumField() {
		if t := tagOf(to.Type().Field(i)); t.name != "" {
			d.unset(join(path, t.name), to.Field(i), to.Type().Field(i).Tag.Get("default"))
		}
	}
}

func (d *decoder) validate(path string, to reflect.Value) {
	v, ok := reflect.TypeAssert[Validator](to.Addr())
	if !ok {
		return
	}

	err := v.Validate()

	if inner, ok := errors.AsType[*OptionsError](err); ok {
		for _, m := range inner.Mistakes {
			d.mistakef(join(path, m.Path), "%s", m.Problem)
		}
	} else if err != nil {
		d.mistakef(path, "%v", err)
	}
}

// value fills one field or element.
func (d *decoder) value(path string, to reflect.Value, from any) {
	if text, ok := reflect.TypeAssert[encoding.TextUnmarshaler](to.Addr()); ok {
		s, ok := scalar(from)
		if !ok {
			d.mistakef(path, "is %s, should be a single value", describe(from))
		} else if err := text.UnmarshalText([]byte(s)); err != nil {
			d.mistakef(path, "%v", err)
		}

		return
	}

	switch to.Kind() {
	case reflect.Struct:
		d.options(path, to, from)
	case reflect.Interface:
		if from != nil && to.NumMethod() == 0 {
			to.Set(reflect.ValueOf(from))
		}
	case reflect.Slice:
		d.list(path, to, from)
	case reflect.Map:
		d.table(path, to, from)
	default:
		d.single(path, to, from)
	}
}

func (d *decoder) list(path string, to reflect.Value, from any) {
	elements, ok := from.([]any)
	if !ok {
		d.mistakef(path, "is %s, should be a list", describe(from))

		return
	}

	list := reflect.MakeSlice(to.Type(), len(elements), len(elements))
	for i, e := range elements {
		d.value(path+"["+strconv.Itoa(i)+"]", list.Index(i), e)
	}

	to.Set(list)
}

func (d *decoder) table(path string, to reflect.Value, from any) {
	entries, ok := from.(map[string]any)
	if !ok || to.Type().Key() != reflect.TypeFor[string]() {
		d.mistakef(path, "is %s, should be %s", describe(from), kind(to))

		return
	}

	table := reflect.MakeMapWithSize(to.Type(), len(entries))

	for _, name := range slices.Sorted(maps.Keys(entries)) {
		element := reflect.New(to.Type().Elem()).Elem()
		d.value(join(path, name), element, entries[name])
		table.SetMapIndex(reflect.ValueOf(name), element)
	}

	to.Set(table)
}

// single fills a field of a plain type. Numbers go through their text, which is what makes every loss visible.
func (d *decoder) single(path string, to reflect.Value, from any) {
	text, _ := scalar(from)
	_, isText := from.(string)
	_, isBool := from.(bool)
	isNumber := text != "" && !isText && !isBool

	switch {
	case to.Kind() == reflect.String && isText:
		to.SetString(text)
	case to.Kind() == reflect.Bool && isBool:
		to.SetBool(text == "true")
	case to.CanInt() && isNumber:
		n, err := strconv.ParseInt(text, 10, to.Type().Bits())
		d.number(path, text, "a whole number", err)
		to.SetInt(n)
	case to.CanUint() && isNumber:
		n, err := strconv.ParseUint(text, 10, to.Type().Bits())
		d.number(path, text, "a whole number, not negative", err)
		to.SetUint(n)
	case to.CanFloat() && isNumber:
		n, err := strconv.ParseFloat(text, to.Type().Bits())
		d.number(path, text, "a number", err)
		to.SetFloat(n)
	default:
		d.mistakef(path, "is %s, should be %s", describe(from), kind(to))
	}
}

func (d *decoder) number(path, text, want string, err error) {
	switch {
	case errors.Is(err, strconv.ErrRange):
		d.mistakef(path, "%s is out of range", text)
	case err != nil:
		d.mistakef(path, "is %s, should be %s", text, want)
	}
}

func join(path, name string) string {
	if path == "" || name == "" {
		return path + name
	}

	return path + "." + name
}

// scalar returns the text of a single value.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64, json.Number:
		return fmt.Sprint(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	default:
		return "", false
	}
}

// describe says what a value in options is.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "empty"
	case string:
		return fmt.Sprintf("the text %q", v)
	case bool:
		return fmt.Sprintf("the truth value %t", v)
	case []any:
		return "a list"
	case map[string]any:
		return "a table"
	default:
		return fmt.Sprintf("the number %v", v)
	}
}

// kind says what a field takes.
func kind(to reflect.Value) string {
	switch {
	case to.Kind() == reflect.String:
		return "text"
	case to.Kind() == reflect.Bool:
		return "true or false"
	case to.CanInt(), to.CanUint(), to.CanFloat():
		return "a number"
	case to.Kind() == reflect.Map && to.Type().Key() == reflect.TypeFor[string]():
		return "a table of names and values"
	default:
		return "of another kind: a " + to.Type().String() + " cannot be set from options"
	}
}
