package plugins

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode fills the struct that into points to from options, as they come out of JSON or YAML.
//
// An exported field takes part when it has a tag `option:"name"`; `option:"name,required"` refuses options without it.
// Fields that options do not name keep their value, which is the default. A field may be a string, a bool, a number, an
// [encoding.TextUnmarshaler] such as [Duration] and [Size], a struct, or a slice or a map (of string keys) of these.
// Nothing is converted silently: a number out of range, a fraction for a whole number and an unknown name are mistakes.
// It fails with an [*OptionsError]; into is then filled in part.
func Decode(options map[string]any, into any) error {
	to := reflect.ValueOf(into)
	if to.Kind() != reflect.Pointer || to.IsNil() || to.Elem().Kind() != reflect.Struct {
		return fmt.Errorf("plugins: options decode into a pointer to a struct, not into %T", into)
	}

	var d decoder

	d.fields("", to.Elem(), options)

	if len(d.mistakes) > 0 {
		return &OptionsError{Mistakes: d.mistakes}
	}

	return nil
}

type decoder struct {
	mistakes []Mistake
}

func (d *decoder) mistakef(path, format string, args ...any) {
	d.mistakes = append(d.mistakes, Mistake{Path: path, Problem: fmt.Sprintf(format, args...)})
}

// fields fills a struct.
func (d *decoder) fields(path string, to reflect.Value, from map[string]any) {
	fields := make(map[string]reflect.Value)

	for i := range to.NumField() {
		name, flag, _ := strings.Cut(to.Type().Field(i).Tag.Get("option"), ",")
		if name == "" || !to.Field(i).CanSet() {
			continue
		}

		fields[name] = to.Field(i)

		if _, given := from[name]; flag == "required" && !given {
			d.mistakef(join(path, name), "is required")
		}
	}

	for _, name := range slices.Sorted(maps.Keys(from)) {
		if field, ok := fields[name]; ok {
			d.value(join(path, name), field, from[name])
		} else {
			d.mistakef(join(path, name), "unknown option; %s", proposal(name, slices.Sorted(maps.Keys(fields))))
		}
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
		if m, ok := from.(map[string]any); ok {
			d.fields(path, to, m)
		} else {
			d.mistakef(path, "is %s, should be options", describe(from))
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
	if path == "" {
		return name
	}

	return path + "." + name
}

// scalar returns the text of a single value.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool, int, int64, uint64:
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
