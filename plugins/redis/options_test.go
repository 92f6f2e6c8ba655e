package redis_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/redis"
)

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()

	good := map[string]any{"url": "redis://:hush@localhost/0", "command": "xadd", "key": "k"}

	for want, change := range map[string]map[string]any{
		"url: is none; it looks like":          {"url": "redis://:hush@local host/"},
		"url: is none; it looks like redis://": {"url": "http://:hush@localhost"},
		`command: "get" is none of xadd, rpu`:  {"command": "get"},
		"key: is required":                     {"key": ""},
		`key: unknown name "kye"`:              {"key": "{kye}"},
		"fields: a list has none":              {"command": "rpush", "fields": map[string]any{"a": "text"}},
		"fields: a hash needs one at least":    {"command": "hset"},
		`fields.a: unknown name "mag"`:         {"fields": map[string]any{"a": "mag"}},
		`fields: "{a" is not closed`:           {"fields": map[string]any{"{a": "text"}},
		"value: is for lists":                  {"value": "text"},
		"max_len: is for streams only":         {"command": "lpush", "max_len": 5},
		"max_len: is negative":                 {"max_len": -1},
		"connections: is negative":             {"connections": -1},
		"tls: the url has to begin with":       {"tls": map[string]any{"ca": "x"}},
	} {
		options := maps.Clone(good)
		maps.Copy(options, change)

		err := plugins.Decode(options, &redis.Options{})
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("the error is %v, want %s", err, want)
		}
	}

	if _, err := redis.New(redis.Options{}); err == nil {
		t.Error("no options are no error")
	}
}

func ExampleSink() {
	var o redis.Options

	err := plugins.Decode(map[string]any{
		"url": "redis://localhost:6379/0", "command": "hset", "key": "quakes", "fields": map[string]any{"{key}": "text"},
	}, &o)
	if err != nil {
		fmt.Println(err)

		return
	}

	// A job opens, calls and closes the sink of a channel itself; this one does not connect.
	quakes, err := redis.New(o)
	fmt.Println(quakes.Meter(), err)
	// Output: map[batches:0 rejected:0 unreachable:0 written:0] <nil>
}
