package standard_test

import (
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/standard"
)

// jobs are job files with a place for the example of each kind.
func jobs() map[plugins.Kind]string {
	const head = "name: x\nbroker: { embedded: ./data }\nsource: { topic: x }\nchannels:\n  work:\n"

	return map[plugins.Kind]string{
		plugins.Transform: head + "    stages:\n      - EXAMPLE\n    sink: { discard: {} }\n",
		plugins.Gather:    head + "    gather: { EXAMPLE }\n    routes: [end]\n  end:\n    sink: { discard: {} }\n",
		plugins.Sink:      head + "    sink: { EXAMPLE }\n",
	}
}

func TestEveryPluginIsDocumentedWithAnExampleThatWorks(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	if err := standard.Register(&r); err != nil {
		t.Fatal(err)
	}

	for _, d := range r.Describe() {
		if !strings.HasSuffix(d.Summary, ".") || !strings.HasPrefix(d.Example, d.Name+":") {
			t.Errorf("%s %s: the summary is %q, the example %q", d.Kind, d.Name, d.Summary, d.Example)

			continue
		}

		for _, o := range d.Options {
			if o.Help == "" {
				t.Errorf("%s %s: option %q has no help", d.Kind, d.Name, o.Name)
			}
		}

		for _, m := range d.Metrics {
			if m.Help == "" {
				t.Errorf("%s %s: metric %q has no help", d.Kind, d.Name, m.Name)
			}
		}

		file := strings.Replace(jobs()[d.Kind], "EXAMPLE", d.Example, 1)
		if _, err := jobfile.Parse("example", []byte(file), &r, jobfile.Variables{}); err != nil {
			t.Errorf("%s %s: %v in\n%s", d.Kind, d.Name, err, file)
		}
	}
}
