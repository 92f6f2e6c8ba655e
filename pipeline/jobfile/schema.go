package jobfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/millrace/millrace/plugins"
)

// object is a part of a JSON Schema.
type object = map[string]any

// stringType is what a schema calls a text.
const stringType = "string"

// ofType, anyOf and closed are the schemas of a type, of one of several, and of a table with some keys and no others.
func ofType(name string) object { return object{"type": name} }

func anyOf(forms ...any) object { return object{"anyOf": forms} }

func closed(properties object) object {
	o := ofType("object")
	o["properties"], o["additionalProperties"] = properties, false

	return o
}

// allLike is the schema of a table whose values have one schema, under any keys.
func allLike(value object) object {
	o := ofType("object")
	o["additionalProperties"] = value

	return o
}

// textLike is the schema of a text that fits a pattern, listOf that of a list of like values.
func textLike(pattern string) object {
	o := ofType(stringType)
	o["pattern"] = pattern

	return o
}

func listOf(value object) object {
	o := ofType("array")
	o["items"] = value

	return o
}

// aVariable is the schema of a text that a variable fills, which may stand for a value of any type.
func aVariable() object { return textLike(`\$\{`) }

// Schema returns a JSON Schema (draft 7) of job files that use the plugins of a registry, for editors: it completes and
// explains keys and plugins. It is more lenient than [Parse], which knows what a schema cannot say.
func Schema(registry *plugins.Registry) ([]byte, error) {
	schema := object{
		"$schema":     "http://json-schema.org/draft-07/schema#",
		"title":       "A millrace job",
		"description": "One document of a job file: a job.",
		"definitions": object{
			"channel":  options(ChannelKeys()),
			"route":    anyOf(options(RouteKeys()), ofType(stringType)),
			"embedded": anyOf(options(EmbeddedKeys()), ofType(stringType)),
			"rocketmq": anyOf(options(RocketMQKeys()), ofType(stringType), listOf(ofType(stringType))),
			"stage":    pluginUse(registry, plugins.Transform),
			"gather":   pluginUse(registry, plugins.Gather),
			"sink":     pluginUse(registry, plugins.Sink),
		},
	}

	maps.Copy(schema, options(Keys()))

	text, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("jobfile: %w", err)
	}

	return append(text, '\n'), nil
}

// options returns the schema of a table with some keys.
func options(keys []plugins.Option) object {
	properties, required := object{}, []string{}

	for _, key := range keys {
		properties[key.Name] = property(key)

		if key.Required {
			required = append(required, key.Name)
		}
	}

	schema := closed(properties)
	if len(required) > 0 {
		schema["required"] = required
	}

	return schema
}

// property returns the schema of a key, with what it is for.
func property(key plugins.Option) object {
	value := typeSchema(key)

	switch {
	case key.List && (key.Name == "tag" || key.Name == "topics" || key.Name == "delay" || key.Name == keyNameServers):
		value = anyOf(listOf(value), value)
	case key.List:
		value = listOf(value)
	case key.Table:
		value = allLike(value)
	}

	if _, isReference := value["$ref"]; isReference {
		value = object{"allOf": []any{value}} // beside a $ref nothing else is looked at
	}

	help := key.Help
	if key.Default != "" {
		help = strings.TrimSpace(help + " Default: " + key.Default + ".")
	}

	if help != "" {
		value["description"] = help
	}

	return value
}

// typeSchema returns the schema of one value of a type.
func typeSchema(key plugins.Option) object {
	reference := func(name string) object { return object{"$ref": "#/definitions/" + name} }

	if len(key.Values) > 0 {
		return anyOf(object{"enum": key.Values}, aVariable())
	}

	switch key.Type {
	case typeText, typeSecret, "field":
		return ofType(stringType)
	case typeInteger, typeBoolean, "number":
		return anyOf(ofType(key.Type), aVariable())
	case typeSize:
		return anyOf(ofType(typeInteger), ofType(stringType))
	case typeDuration:
		return textLike(`\$\{|^[0-9.]+(ns|us|µs|ms|s|m|h)`)
	case typeOptions:
		return anyOf(forms(key.Options)...)
	case typeChannels:
		channels := allLike(reference("channel"))
		channels["minProperties"] = 1

		return channels
	case typeRoute, typeStage, typeGather, typeSink, typeRocketMQ:
		return reference(key.Type)
	case typeEmbedded:
		return reference("embedded")
	case typeAny:
		return object{}
	default:
		// A type with a text form of its own takes any single value.
		return anyOf(ofType(stringType), ofType("number"), ofType(typeBoolean))
	}
}

// pluginUse returns the schema of a plugin of a kind with its options: its name alone, or a table of the two.
func pluginUse(registry *plugins.Registry, kind plugins.Kind) object {
	properties, names := object{}, []string{}

	for _, p := range registry.Describe() {
		if p.Kind == kind {
			properties[p.Name] = pluginSchema(p)
			names = append(names, p.Name)
		}
	}

	most := 1

	if kind != plugins.Sink {
		most = 2
		properties[keyName] = property(plugins.Option{
			Name: keyName, Type: typeText, Help: "The name of this " + called(kind) + " in reports.",
		})
	}

	table := closed(properties)
	table["minProperties"], table["maxProperties"] = 1, most

	return anyOf(table, object{"enum": names})
}

// pluginSchema returns the schema of a plugin's options: a table, the main option alone, or nothing.
func pluginSchema(p plugins.Description) object {
	all := forms(p.Options)

	if options(p.Options)["required"] == nil {
		all = append(all, ofType("null"))
	}

	help := p.Summary
	if p.Text != "" {
		help += "\n\n" + p.Text
	}

	schema := anyOf(all...)
	schema["description"] = help

	return schema
}

// forms returns the schemas that options may be given in: as a table, or as the main option alone.
func forms(all []plugins.Option) []any {
	allowed := []any{options(all)}

	for _, o := range all {
		if o.Main {
			allowed = append(allowed, property(o))
		}
	}

	return allowed
}
