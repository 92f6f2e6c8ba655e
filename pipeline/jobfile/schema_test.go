package jobfile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// schemaOf compiles the schema of job files with the plugins of a registry.
func schemaOf(t *testing.T, r *plugins.Registry) *jsonschema.Schema {
	t.Helper()

	text, err := jobfile.Schema(r)
	if err != nil {
		t.Fatal(err)
	}

	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}

	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("job.json", doc); err != nil {
		t.Fatal(err)
	}

	schema, err := compiler.Compile("job.json")
	if err != nil {
		t.Fatal(err)
	}

	return schema
}

// documents returns the documents of a YAML file as a schema sees them.
func documents(t *testing.T, src []byte) []any {
	t.Helper()

	var all []any

	decoder := yaml.NewDecoder(bytes.NewReader(src))

	for {
		var doc any
		if err := decoder.Decode(&doc); err != nil {
			return all
		}

		if doc == nil {
			continue
		}

		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}

		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}

		all = append(all, value)
	}
}

func TestTheSchemaTakesWhatParseTakes(t *testing.T) {
	t.Parallel()

	schema := schemaOf(t, registry(t))
	seen := 0

	for _, file := range files(t, "good", 2) {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		// In braces YAML takes those of a variable for its own, so Parse hides them and a schema never meets them.
		src = bytes.ReplaceAll(src, []byte("${LANES}"), []byte(`"${LANES}"`))

		for _, doc := range documents(t, src) {
			seen++

			if err := schema.Validate(doc); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}

	if seen < 3 {
		t.Errorf("only %d documents were seen", seen)
	}
}

func TestTheSchemaRefusesWhatItCanKnow(t *testing.T) {
	t.Parallel()

	schema := schemaOf(t, registry(t))

	for _, name := range []string{
		"nothing-in-it", "unknown-keys", "wrong-types", "plugins", "options-deep", "not-a-table", "no-values",
	} {
		src, err := os.ReadFile("testdata/broken/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}

		for _, doc := range documents(t, src) {
			if err := schema.Validate(doc); err == nil {
				t.Errorf("%s.yaml is taken", name)
			}
		}
	}
}

func TestTheSchemaTakesTheExampleOfEveryPlugin(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	if err := standard.Register(&r); err != nil {
		t.Fatal(err)
	}

	schema := schemaOf(t, &r)

	for _, p := range r.Describe() {
		example := strings.ReplaceAll(strings.TrimSpace(p.Example), "\n", "\n        ")
		end := map[plugins.Kind]string{
			plugins.Transform: "stages:\n      - " + example + "\n    sink: discard",
			plugins.Gather:    "gather:\n        " + example + "\n    routes: [b]",
			plugins.Sink:      "sink:\n        " + example,
		}[p.Kind]

		src := "name: x\nbroker: { embedded: data }\nsource: { topic: x }\nchannels:\n  a:\n    " + end + "\n"
		docs := documents(t, []byte(src))

		if len(docs) != 1 {
			t.Errorf("%s %s: the example is no YAML:\n%s", p.Kind, p.Name, src)

			continue
		}

		if err := schema.Validate(docs[0]); err != nil {
			t.Errorf("%s %s: %v\n%s", p.Kind, p.Name, err, src)
		}
	}
}

func TestEveryKeyIsDescribed(t *testing.T) {
	t.Parallel()

	names := func(keys []plugins.Option, within ...string) string {
		for _, w := range within {
			for _, k := range keys {
				if k.Name == w {
					keys = k.Options

					break
				}
			}
		}

		all := make([]string, len(keys))
		for i, k := range keys {
			all[i] = k.Name

			if k.Help == "" {
				t.Errorf("%s has no help", k.Name)
			}
		}

		return pipeline.Suggest("zzzzzzzzzzzz", all)
	}

	const wrong = "{ zzzzzzzzzzzz: 1 }"

	for src, want := range map[string]string{
		"zzzzzzzzzzzz: 1\n" + head:                                    names(jobfile.Keys()),
		"broker: " + wrong:                                            names(jobfile.Keys(), "broker"),
		"source: " + wrong:                                            names(jobfile.Keys(), "source"),
		"retry: " + wrong:                                             names(jobfile.Keys(), "retry"),
		"channels: { a: " + wrong + " }":                              names(jobfile.ChannelKeys()),
		"channels: { a: { batch: " + wrong + " } }":                   names(jobfile.ChannelKeys(), "batch"),
		"channels: { a: { breaker: " + wrong + " } }":                 names(jobfile.ChannelKeys(), "breaker"),
		"channels: { a: { routes: [ " + wrong + " ] } }":              names(jobfile.RouteKeys()),
		"broker: { embedded: " + wrong + " }":                         names(jobfile.EmbeddedKeys()),
		"broker: { rocketmq: " + wrong + " }":                         names(jobfile.RocketMQKeys()),
		"broker: { embedded: { dir: x, keep: { zzzzzzzzzzzz: 1 } } }": names(jobfile.EmbeddedKeys(), "keep"),
	} {
		if _, err := parse(t, src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q in\n%v", src, want, err)
		}
	}
}
