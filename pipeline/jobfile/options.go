package jobfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/millrace/millrace/plugins"
)

// keyName is the key for the name of a job or a stage.
const keyName = "name"

// typeAny is the type of an option that takes what there is.
const typeAny = "any"

// uses reads the plugins of a channel.
func (d *decoder) uses(j *Job, channel int, f fields) uses {
	var u uses

	if n := f.get("stages"); n != nil && n.kind != list {
		d.mistakef(n.at, "stages is %s; it should be a list, each a plugin with its options", n.is())
	} else if n != nil {
		u.stages = d.stages(j, channel, n)
	}

	if n := f.get("gather"); n != nil {
		if gather, ok := d.use(plugins.Gather, n); ok {
			u.gather = &gather
			j.at[at(channel, "gather.name")] = n.at
		}
	}

	if n := f.get("sink"); n != nil {
		if sink, ok := d.use(plugins.Sink, n); ok {
			u.sink = &sink
		}
	}

	return u
}

func (d *decoder) stages(j *Job, channel int, n *node) []use {
	var stages []use

	for _, item := range n.items {
		stage, ok := d.use(plugins.Transform, item)
		if !ok {
			continue
		}

		if stage.name == "" {
			stage.name = freeName(stage.plugin, stages)
		}

		path := at(channel, fmt.Sprintf("stages[%d].name", len(stages)))

		j.at[path] = item.at
		if name := item.get(keyName); name != nil {
			j.at[path] = name.at
		}

		stages = append(stages, stage)
	}

	return stages
}

// freeName returns the name of a stage that has none of its own: its plugin's, with a number from the second one on.
func freeName(plugin string, others []use) string {
	for n := 1; ; n++ {
		name := plugin
		if n > 1 {
			name += "-" + strconv.Itoa(n)
		}

		if !slices.ContainsFunc(others, func(u use) bool { return u.name == name }) {
			return name
		}
	}
}

// use reads a plugin: its name alone, or a table of its name and its options, with `name` beside it where it has one.
func (d *decoder) use(kind plugins.Kind, n *node) (use, bool) {
	if n.kind == single {
		u := use{plugin: d.textOf(n, called(kind))}
		d.check(kind, u, entry{key: n.text, at: n.at, value: &node{at: n.at}})

		return u, u.plugin != ""
	}

	if n.kind != table {
		d.mistakef(n.at, "the %s is %s; it should be a plugin with its options, such as %s",
			called(kind), n.is(), d.example(kind))

		return use{}, false
	}

	var (
		u      use
		plugin entry
		count  int
	)

	for _, e := range n.entries {
		if e.key == keyName && len(n.entries) > 1 && kind != plugins.Sink {
			u.name = fields{decoder: d, node: n, what: "the " + called(kind)}.text(keyName)

			continue
		}

		count++
		if count == 1 {
			plugin = e
		}
	}

	if count != 1 {
		d.mistakef(n.at, "the %s has %d plugins; it should have one, such as %s", called(kind), count, d.example(kind))

		return use{}, false
	}

	u.plugin = plugin.key
	u.options = d.options(kind, plugin)
	d.check(kind, u, plugin)

	return u, true
}

// example returns how a plugin of a kind is written.
func (d *decoder) example(kind plugins.Kind) string {
	for _, p := range d.registry.Describe() {
		if p.Kind == kind && p.Example != "" && !strings.Contains(strings.TrimSpace(p.Example), "\n") {
			return strings.TrimSpace(p.Example)
		}
	}

	return "plugin: { option: value }"
}

// check reports what is wrong with a plugin's name and options.
func (d *decoder) check(kind plugins.Kind, u use, e entry) {
	err := d.registry.Check(kind, u.plugin, u.options)
	if err == nil {
		return
	}

	if unknown, ok := errors.AsType[*plugins.UnknownPluginError](err); ok {
		d.mistakef(e.at, "%s", problemOf(unknown))

		return
	}

	wrong, ok := errors.AsType[*plugins.OptionsError](err)
	if !ok {
		d.mistakef(e.at, "%s: %v", u.plugin, err)

		return
	}

	for _, m := range wrong.Mistakes {
		where, found := locate(e, m.Path)
		problem := found.conceal(m.Problem)

		if m.Path != "" {
			problem = m.Path + ": " + problem
		}

		d.mistakef(where, "%s: %s", u.plugin, problem)
	}
}

// problemOf says that a plugin is unknown, where a stage is just a plugin.
func problemOf(e *plugins.UnknownPluginError) string {
	return strings.ReplaceAll(strings.Replace(e.Problem(), "unknown transform", "unknown plugin", 1), "a transform", "a stage")
}

// called returns what a plugin of a kind is called in a job file.
func called(kind plugins.Kind) string {
	if kind == plugins.Transform {
		return "stage"
	}

	return string(kind)
}

// locate finds what a path below options leads to: the place to show, which is the key's where the value is no part of the
// mistake, and the value. A path into nothing ends where the file does.
func locate(e entry, path string) (Place, *node) {
	for path != "" {
		if rest, ok := strings.CutPrefix(path, "["); ok && e.value.kind == list {
			number, after, _ := strings.Cut(rest, "]")

			i, err := strconv.Atoi(number)
			if err != nil || i < 0 || i >= len(e.value.items) {
				break
			}

			e, path = entry{at: e.value.items[i].at, value: e.value.items[i]}, strings.TrimPrefix(after, ".")

			continue
		}

		next, rest, ok := step(e.value, path)
		if !ok {
			if e.value.kind == table || e.value.kind == null {
				return e.at, e.value
			}

			break
		}

		e, path = next, rest
	}

	if e.value.kind == table || e.value.kind == null {
		return e.at, e.value
	}

	return e.value.at, e.value
}

// step follows the first name of a path. A name may have dots in it, so the longest one that fits is taken.
func step(n *node, path string) (found entry, rest string, ok bool) {
	for _, e := range n.entries {
		after, fits := strings.CutPrefix(path, e.key)
		if !fits || after != "" && after[0] != '.' && after[0] != '[' {
			continue
		}

		if !ok || len(e.key) > len(found.key) {
			found, rest, ok = e, strings.TrimPrefix(after, "."), true
		}
	}

	return found, rest, ok
}

// conceal replaces in a message about a value what a variable has put there by how the variable is written.
func (n *node) conceal(problem string) string {
	if n.raw == "" || n.text == "" {
		return problem
	}

	quoted := strings.Trim(strconv.Quote(n.text), `"`)

	return strings.ReplaceAll(strings.ReplaceAll(problem, quoted, n.raw), n.text, n.raw)
}

// options returns the options of a plugin as the registry takes them.
func (d *decoder) options(kind plugins.Kind, e entry) any {
	var described []plugins.Option

	for _, p := range d.registry.Find(e.key) {
		if p.Kind == kind {
			described = p.Options
		}
	}

	if e.value.kind != table {
		main := slices.IndexFunc(described, func(o plugins.Option) bool { return o.Main })
		if main < 0 {
			return d.value(e.value, plugins.Option{Type: "text"})
		}

		return d.value(e.value, described[main])
	}

	return d.value(e.value, plugins.Option{Type: "options", Options: described})
}

// value returns a node as the registry takes it. What a variable has put there is read as the option's type wants it: it
// has no quotes by which to tell a text from a number.
func (d *decoder) value(n *node, o plugins.Option) any {
	d.values++
	if d.values > maxNodes {
		if d.values == maxNodes+1 {
			d.mistakef(n.at, "aliases make more than %d values of the options; write less, or split the file", maxNodes)
		}

		return nil
	}

	switch n.kind {
	case list:
		o.List = false
		values := make([]any, len(n.items))

		for i, item := range n.items {
			values[i] = d.value(item, o)
		}

		return values
	case table:
		return d.entriesOf(n, o)
	case single:
		if o.Type == typeSecret && n.text != "" {
			d.secrets = append(d.secrets, plugins.NewSecret(n.text))
		}

		if n.raw == "" || n.quoted {
			return n.value
		}

		return typed(n.text, o.Type)
	case null:
	}

	return nil
}

func (d *decoder) entriesOf(n *node, o plugins.Option) map[string]any {
	values := make(map[string]any, len(n.entries))

	for _, e := range n.entries {
		inner := o
		inner.Table = false

		if !o.Table && o.Type != typeAny {
			inner = plugins.Option{Type: "text"}
			if i := slices.IndexFunc(o.Options, func(o plugins.Option) bool { return o.Name == e.key }); i >= 0 {
				inner = o.Options[i]
			}
		}

		values[e.key] = d.value(e.value, inner)
	}

	return values
}

// typed returns a text as a type of an option wants it, or as it is where it does not fit, which the registry then says.
func typed(text, want string) any {
	v := plain(text)

	switch v.(type) {
	case bool:
		if want == "boolean" || want == typeAny {
			return v
		}
	case int64, float64:
		if want == "integer" || want == "number" || want == typeAny {
			return v
		}
	}

	return text
}
