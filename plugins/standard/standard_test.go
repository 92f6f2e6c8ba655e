package standard_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/file"
	"github.com/millrace/millrace/plugins/standard"
	"github.com/millrace/millrace/plugins/topic"
)

type nowhere struct{}

func (nowhere) Publish(context.Context, string, []*pipeline.Message) error { return nil }

func TestEveryBuiltInPluginIsMadeByName(t *testing.T) {
	t.Parallel()

	var r plugins.Registry
	if err := standard.Register(&r); err != nil {
		t.Fatal(err)
	}

	env := plugins.Env{Publisher: nowhere{}}
	path := filepath.Join(t.TempDir(), "x.jsonl")

	sink, err := r.Sink("file", map[string]any{"path": path, "fsync": "never"}, env)
	if _, ok := sink.(*file.Sink); !ok || err != nil {
		t.Errorf("file is %T, %v", sink, err)
	}

	sink, err = r.Sink("topic", map[string]any{"name": "alerts"}, env)
	if _, ok := sink.(*topic.Sink); !ok || err != nil {
		t.Errorf("topic is %T, %v", sink, err)
	}

	for plugin, options := range map[string]map[string]any{
		"file":  {"path": path, "fsync": "sometimes"},
		"topic": {},
	} {
		if _, err := r.Sink(plugin, options, env); err == nil {
			t.Errorf("%s takes %v", plugin, options)
		}
	}

	if err := standard.Register(&r); err == nil {
		t.Error("registering twice is no error")
	}
}
