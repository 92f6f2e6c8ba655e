// Package standard registers every plugin that comes with millrace.
package standard

import (
	"errors"
	"os"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/compress"
	"github.com/millrace/millrace/plugins/dedupe"
	"github.com/millrace/millrace/plugins/discard"
	"github.com/millrace/millrace/plugins/file"
	"github.com/millrace/millrace/plugins/httpsink"
	"github.com/millrace/millrace/plugins/sample"
	"github.com/millrace/millrace/plugins/split"
	"github.com/millrace/millrace/plugins/stdout"
	"github.com/millrace/millrace/plugins/throttle"
	"github.com/millrace/millrace/plugins/topic"
)

// Register adds every plugin to r. It fails when one of their names is taken.
func Register(r *plugins.Registry) error {
	return errors.Join(transforms(r), sinks(r))
}

// newLane makes the instance of one lane.
type newLane = func() (pipeline.Transform, error)

func transforms(r *plugins.Registry) error {
	return errors.Join(
		plugins.AddTransform(r, "compress", compress.Doc(), func(_ plugins.Env, o compress.Options) (pipeline.Transform, error) {
			return compress.New(o)
		}),
		plugins.AddTransform(r, "decompress", compress.DecompressDoc(),
			func(_ plugins.Env, o compress.DecompressOptions) (pipeline.Transform, error) {
				return compress.NewDecompressor(o)
			}),
		plugins.AddStage(r, "dedupe", dedupe.Doc(), func(_ plugins.Env, o dedupe.Options) (newLane, error) {
			return dedupe.Lanes(o)
		}),
		plugins.AddTransform(r, "sample", sample.Doc(), func(_ plugins.Env, o sample.Options) (pipeline.Transform, error) {
			return sample.New(o)
		}),
		plugins.AddTransform(r, "split", split.Doc(), func(_ plugins.Env, o split.Options) (pipeline.Transform, error) {
			return split.New(o)
		}),
		plugins.AddStage(r, "throttle", throttle.Doc(), func(_ plugins.Env, o throttle.Options) (newLane, error) {
			return throttle.Lanes(o)
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
		plugins.AddSink(r, "stdout", stdout.Doc(), func(_ plugins.Env, o stdout.Options) (pipeline.Sink, error) {
			return stdout.New(o, os.Stdout)
		}),
		plugins.AddSink(r, "topic", topic.Doc(), func(env plugins.Env, o topic.Options) (pipeline.Sink, error) {
			return topic.New(env.Publisher, o)
		}),
	)
}
