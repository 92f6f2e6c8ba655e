package jobfile_test

import (
	"context"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/discard"
	"github.com/millrace/millrace/plugins/edit"
	"github.com/millrace/millrace/plugins/file"
	"github.com/millrace/millrace/plugins/filter"
	"github.com/millrace/millrace/plugins/topic"
)

// update rewrites the expected texts in testdata and docs: go test ./pipeline/jobfile -update.
var update = flag.Bool("update", false, "rewrite the golden files") //nolint:gochecknoglobals // a flag of the test

type upperOptions struct {
	Suffix string `option:"suffix,main"`
	Times  int    `default:"1"          option:"times"`
}

type joinOptions struct {
	With string `default:";" option:"with,main"`
}

type rule struct {
	Name string           `option:"name,required"`
	Wait plugins.Duration `option:"wait"`
}

type deepOptions struct {
	Rules  []rule                      `option:"rules"`
	Table  map[string]plugins.Duration `option:"table"`
	Secret plugins.Secret              `option:"secret"`
	Any    any                         `option:"any"`
	Ratio  float64                     `option:"ratio"`
	Strict bool                        `option:"strict"`
}

// registry returns some of the standard plugins, and others to be held against mistakes.
func registry(tb testing.TB) *plugins.Registry {
	tb.Helper()

	var r plugins.Registry

	add := func(err error) {
		if err != nil {
			tb.Fatal(err)
		}
	}

	add(plugins.AddSink(&r, "discard", discard.Doc(),
		func(_ plugins.Env, o discard.Options) (pipeline.Sink, error) { return discard.New(o), nil }))
	add(plugins.AddSink(&r, "file", file.Doc(),
		func(env plugins.Env, o file.Options) (pipeline.Sink, error) { return file.New(o, env.Log) }))
	add(plugins.AddSink(&r, "topic", topic.Doc(),
		func(env plugins.Env, o topic.Options) (pipeline.Sink, error) { return topic.New(env.Publisher, o) }))
	add(plugins.AddTransform(&r, "filter", filter.Doc(),
		func(_ plugins.Env, o filter.Options) (pipeline.Transform, error) { return filter.New(o) }))
	add(plugins.AddTransform(&r, "json", edit.Doc(),
		func(_ plugins.Env, o edit.Options) (pipeline.Transform, error) { return edit.New(o) }))
	add(plugins.AddTransform(&r, "upper", plugins.Doc{Example: `upper: "!"`},
		func(_ plugins.Env, o upperOptions) (pipeline.Transform, error) {
			return pipeline.TransformFunc(func(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error {
				m.Body = []byte(strings.ToUpper(string(m.Body)) + strings.Repeat(o.Suffix, o.Times))

				return emit(m)
			}), nil
		}))
	add(plugins.AddTransform(&r, "deep", plugins.Doc{},
		func(plugins.Env, deepOptions) (pipeline.Transform, error) { return pipeline.TransformFunc(nil), nil }))
	add(plugins.AddGather(&r, "join", plugins.Doc{},
		func(plugins.Env, joinOptions) (pipeline.BatchTransform, error) {
			return pipeline.BatchTransformFunc(
				func(_ context.Context, batch []*pipeline.Message, emit pipeline.Emit) error { return emit(batch[0]) }), nil
		}))

	return &r
}

// variables are the same on every machine.
func variables() jobfile.Variables {
	set := map[string]string{"LANES": "3", "PREFIX": "eu", "PASSWORD": "hunter2", "EMPTY": "", "TRUE": "true"}

	return jobfile.Variables{
		Lookup: func(name string) (string, bool) {
			v, ok := set[name]

			return v, ok
		},
		ReadFile: func(path string) ([]byte, error) {
			if path == "secret.txt" {
				return []byte("open sesame\n"), nil
			}

			return nil, fs.ErrNotExist
		},
	}
}

// golden compares text with what a file holds.
func golden(t *testing.T, path, text string) {
	t.Helper()

	if *update {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	if text != string(want) {
		t.Errorf("%s (go test -update rewrites it)\ngot:\n%s\nwant:\n%s", path, text, want)
	}
}

// files returns the YAML files of a folder of testdata, of which there are at least so many.
func files(tb testing.TB, folder string, least int) []string {
	tb.Helper()

	names, err := filepath.Glob(filepath.Join("testdata", folder, "*.yaml"))
	if err != nil || len(names) < least {
		tb.Fatalf("%d files in testdata/%s, %v; there should be at least %d", len(names), folder, err, least)
	}

	return names
}

func parse(tb testing.TB, src string) (*jobfile.File, error) {
	tb.Helper()

	return jobfile.Parse("job.yaml", []byte(src), registry(tb), variables())
}
