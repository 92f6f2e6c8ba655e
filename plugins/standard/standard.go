// Package standard registers every plugin that comes with millrace.
package standard

import (
	"errors"
	"os"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/archive"
	"github.com/millrace/millrace/plugins/choose"
	"github.com/millrace/millrace/plugins/compress"
	"github.com/millrace/millrace/plugins/dedupe"
	"github.com/millrace/millrace/plugins/discard"
	"github.com/millrace/millrace/plugins/edit"
	"github.com/millrace/millrace/plugins/enrich"
	"github.com/millrace/millrace/plugins/exec"
	"github.com/millrace/millrace/plugins/file"
	"github.com/millrace/millrace/plugins/filter"
	"github.com/millrace/millrace/plugins/httplookup"
	"github.com/millrace/millrace/plugins/httpsink"
	"github.com/millrace/millrace/plugins/jq"
	"github.com/millrace/millrace/plugins/label"
	"github.com/millrace/millrace/plugins/logger"
	"github.com/millrace/millrace/plugins/mapping"
	"github.com/millrace/millrace/plugins/redis"
	"github.com/millrace/millrace/plugins/sample"
	"github.com/millrace/millrace/plugins/split"
	"github.com/millrace/millrace/plugins/sql"
	"github.com/millrace/millrace/plugins/stdout"
	"github.com/millrace/millrace/plugins/throttle"
	"github.com/millrace/millrace/plugins/topic"
	"github.com/millrace/millrace/plugins/wasm"
)

// Register adds every plugin to r. It fails when one of their names is taken.
func Register(r *plugins.Registry) error {
	return errors.Join(expressions(r), transforms(r), gathers(r), sinks(r))
}

// newLane makes the instance of one lane.
type newLane = func() (pipeline.Transform, error)

// expressions are the transforms that work by expressions over messages and their JSON bodies.
func expressions(r *plugins.Registry) error {
	return errors.Join(
		plugins.AddTransform(r, "filter", filter.Doc(), func(_ plugins.Env, o filter.Options) (pipeline.Transform, error) {
			return filter.New(o)
		}),
		plugins.AddTransform(r, "json", edit.Doc(), func(_ plugins.Env, o edit.Options) (pipeline.Transform, error) {
			return edit.New(o)
		}),
		plugins.AddTransform(r, "key", label.KeyDoc(), func(_ plugins.Env, o label.Options) (pipeline.Transform, error) {
			return label.NewKey(o)
		}),
		plugins.AddTransform(r, "map", mapping.Doc(), func(_ plugins.Env, o mapping.Options) (pipeline.Transform, error) {
			return mapping.New(o)
		}),
		plugins.AddTransform(r, "switch", choose.Doc(), func(_ plugins.Env, o choose.Options) (pipeline.Transform, error) {
			return choose.New(o)
		}),
		plugins.AddTransform(r, "tag", label.TagDoc(), func(_ plugins.Env, o label.Options) (pipeline.Transform, error) {
			return label.NewTag(o)
		}),
	)
}

func transforms(r *plugins.Registry) error {
	return errors.Join(
		plugins.AddTransform(r, "compress", compress.Doc(), func(_ plugins.Env, o compress.Options) (pipeline.Transform, error) {
			return compress.New(o)
		}),
		plugins.AddTransform(r, "decompress", compress.DecompressDoc(),
			func(_ plugins.Env, o compress.DecompressOptions) (pipeline.Transform, error) {
				return compress.NewDecompressor(o)
			}),
		plugins.AddStage(r, "dedupe", dedupe.Doc(), func(env plugins.Env, o dedupe.Options) (newLane, error) {
			return dedupe.Lanes(o, env.Clock)
		}),
		plugins.AddStage(r, "enrich", enrich.Doc(), func(env plugins.Env, o enrich.Options) (newLane, error) {
			return enrich.Lanes(o, env.Log)
		}),
		plugins.AddTransform(r, "exec", exec.Doc(), func(env plugins.Env, o exec.Options) (pipeline.Transform, error) {
			return exec.NewTransform(o, env.Log)
		}),
		plugins.AddStage(r, "http", httplookup.Doc(), func(env plugins.Env, o httplookup.Options) (newLane, error) {
			return httplookup.Lanes(o, env.Clock)
		}),
		plugins.AddTransform(r, "jq", jq.Doc(), func(_ plugins.Env, o jq.Options) (pipeline.Transform, error) {
			return jq.New(o)
		}),
		plugins.AddTransform(r, "log", logger.Doc(), func(env plugins.Env, o logger.Options) (pipeline.Transform, error) {
			return logger.New(o, env.Log)
		}),
		plugins.AddTransform(r, "sample", sample.Doc(), func(_ plugins.Env, o sample.Options) (pipeline.Transform, error) {
			return sample.New(o)
		}),
		plugins.AddTransform(r, "split", split.Doc(), func(_ plugins.Env, o split.Options) (pipeline.Transform, error) {
			return split.New(o)
		}),
		plugins.AddStage(r, "throttle", throttle.Doc(), func(env plugins.Env, o throttle.Options) (newLane, error) {
			return throttle.Lanes(o, env.Clock)
		}),
		plugins.AddTransform(r, "unarchive", archive.UnarchiveDoc(),
			func(_ plugins.Env, o archive.UnarchiveOptions) (pipeline.Transform, error) {
				return archive.NewUnarchive(o)
			}),
		plugins.AddStage(r, "wasm", wasm.Doc(), func(env plugins.Env, o wasm.Options) (newLane, error) {
			return wasm.Lanes(o, env.Log)
		}),
	)
}

func gathers(r *plugins.Registry) error {
	batch := func(_ plugins.Env, o archive.Options) (pipeline.BatchTransform, error) { return archive.New(o) }
	alias := archive.Doc()
	alias.Example = "archive: { format: array }"

	return errors.Join(
		plugins.AddGather(r, "archive", alias, batch),
		plugins.AddGather(r, "batch", archive.Doc(), batch),
		plugins.AddGather(r, "exec", exec.Doc(), func(env plugins.Env, o exec.Options) (pipeline.BatchTransform, error) {
			return exec.New(o, env.Log)
		}),
	)
}

func sinks(r *plugins.Registry) error {
	return errors.Join(
		plugins.AddSink(r, "discard", discard.Doc(), func(_ plugins.Env, o discard.Options) (pipeline.Sink, error) {
			return discard.New(o), nil
		}),
		plugins.AddSink(r, "file", file.Doc(), func(env plugins.Env, o file.Options) (pipeline.Sink, error) {
			return file.New(o, env.Log)
		}),
		plugins.AddSink(r, "http", httpsink.Doc(), func(_ plugins.Env, o httpsink.Options) (pipeline.Sink, error) {
			return httpsink.New(o)
		}),
		plugins.AddSink(r, "redis", redis.Doc(), func(_ plugins.Env, o redis.Options) (pipeline.Sink, error) {
			return redis.New(o)
		}),
		plugins.AddSink(r, "sql", sql.Doc(), func(_ plugins.Env, o sql.Options) (pipeline.Sink, error) {
			return sql.New(o)
		}),
		plugins.AddSink(r, "stdout", stdout.Doc(), func(_ plugins.Env, o stdout.Options) (pipeline.Sink, error) {
			return stdout.New(o, os.Stdout)
		}),
		plugins.AddSink(r, "topic", topic.Doc(), func(env plugins.Env, o topic.Options) (pipeline.Sink, error) {
			return topic.New(env.Publisher, o)
		}),
	)
}
