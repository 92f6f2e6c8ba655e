package plugins

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Doc is what a plugin says of itself.
type Doc struct {
	// Summary is one sentence.
	Summary string
	// Text is the rest, in plain paragraphs; may be empty.
	Text string
	// Example is how a job file uses the plugin, as YAML: a mapping from the plugin's name to its options.
	Example string
	// Metrics are what it counts, as a [pipeline.Meter]; may be empty.
	Metrics []Metric
}

// Metric is one number that a plugin counts.
type Metric struct {
	// Name is the key in what [pipeline.Meter] returns.
	Name string
	// Help says what it counts.
	Help string
}

// Description is a registered plugin as documentation and schemas show it.
type Description struct {
	Doc

	Kind Kind
	Name string
	// Options are in the order of the struct.
	Options []Option
}

// Option is one option of a plugin.
type Option struct {
	// Name is the key in a job file.
	Name string
	// Help says what it does.
	Help string
	// Type says what it takes: text, boolean, integer, number, options, any, or what its type says of itself, such as
	// duration. List and Table say that it takes several of them, in a sequence or under names.
	Type        string
	List, Table bool
	// Values are all that it can be; nil where they cannot be listed.
	Values []string
	// Default is what it is when it is not given, as text; empty for nothing.
	Default string
	// Required options must be given. The Main option may be given alone, in place of the table of options.
	Required, Main bool
	// Options are those of one element, where Type is options.
	Options []Option
}

// Typed is what an option type with a text form of its own implements to say what it takes.
type Typed interface {
	// OptionType returns the type's name in documentation, such as "duration", and all values when there are only a few.
	OptionType() (name string, values []string)
}

// Describe returns all plugins, by kind (transforms, gathers, sinks) and name.
func (r *Registry) Describe() []Description {
	var all []Description

	for _, kind := range []Kind{Transform, Gather, Sink} {
		for _, name := range slices.Sorted(maps.Keys(r.plugins[kind])) {
			p := r.plugins[kind][name]
			all = append(all, Description{Doc: p.doc, Kind: kind, Name: name, Options: describeOptions(p.options)})
		}
	}

	return all
}

// Find returns all plugins of a name; a name may be used once for each kind.
func (r *Registry) Find(name string) []Description {
	return slices.DeleteFunc(r.Describe(), func(d Description) bool { return d.Name != name })
}

func describeOptions(options reflect.Type) []Option {
	if options.Kind() != reflect.Struct {
		return nil
	}

	all := make([]Option, 0, options.NumField())

	for field := range options.Fields() {
		tag := tagOf(field)
		if tag.name == "" {
			continue
		}

		o := Option{
			Name: tag.name, Help: field.Tag.Get("help"), Default: field.Tag.Get("default"),
			Required: tag.required, Main: tag.main,
		}
		o.describe(field.Type)
		all = append(all, o)
	}

	return all
}

func (o *Option) describe(t reflect.Type) {
	zero := reflect.New(t)

	typed, isTyped := reflect.TypeAssert[Typed](zero)
	_, isText := reflect.TypeAssert[encoding.TextUnmarshaler](zero)

	switch {
	case isTyped:
		o.Type, o.Values = typed.OptionType()
	case isText, t.Kind() == reflect.String:
		o.Type = "text"
	case t.Kind() == reflect.Slice:
		o.List = true
		o.describe(t.Elem())
	case t.Kind() == reflect.Map:
		o.Table = true
		o.describe(t.Elem())
	case t.Kind() == reflect.Struct:
		o.Type, o.Options = "options", describeOptions(t)
	case t.Kind() == reflect.Bool:
		o.Type = "boolean"
	case zero.Elem().CanFloat():
		o.Type = "number"
	case zero.Elem().CanInt() || zero.Elem().CanUint():
		o.Type = "integer"
	default:
		o.Type = "any"
	}
}

// tag is what the tags of a field say of its option.
type tag struct {
	name           string
	required, main bool
	unknown        string
}

func tagOf(f reflect.StructField) tag {
	if !f.IsExported() {
		return tag{}
	}

	name, flags, _ := strings.Cut(f.Tag.Get("option"), ",")
	t := tag{name: name}

	for flag := range strings.SplitSeq(flags, ",") {
		switch flag {
		case "":
		case "required":
			t.required = true
		case "main":
			t.main = true
		default:
			t.unknown = flag
		}
	}

	return t
}

// checkTags refuses what no options could be decoded by.
func checkTags(options reflect.Type) error {
	if options.Kind() != reflect.Struct {
		return fmt.Errorf("options are a struct, not a %s", options)
	}

	mains := 0

	for field := range options.Fields() {
		t := tagOf(field)

		if t.unknown != "" {
			return fmt.Errorf("option %q has an unknown flag %q", t.name, t.unknown)
		}

		if t.main {
			mains++
		}

		inner := field.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map {
			inner = inner.Elem()
		}

		_, isText := reflect.TypeAssert[encoding.TextUnmarshaler](reflect.New(inner))
		if t.name == "" || isText || inner.Kind() != reflect.Struct {
			continue
		}

		if err := checkTags(inner); err != nil {
			return err
		}
	}

	if mains > 1 {
		return fmt.Errorf("%s has more than one main option", options)
	}

	var d decoder

	d.defaults("", reflect.New(options).Elem())

	return d.err()
}
