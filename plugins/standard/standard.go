// Package standard registers every plugin that comes with millrace.
package standard

import (
	"errors"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/file"
	"github.com/millrace/millrace/plugins/topic"
)

// Needs is what the plugins get from the composition root.
type Needs struct {
	// Publisher takes what the sink "topic" writes; nil makes that sink fail when it is asked for.
	Publisher consumer.Publisher
	// Log is where plugins report what is no error; nil logs nothing.
	Log *zap.Logger
}

// Register adds the sinks "file" and "topic" to r. It fails when one of the names is taken.
func Register(r *plugins.Registry, n Needs) error {
	return errors.Join(
		plugins.AddSink(r, "file", func(o file.Options) (pipeline.Sink, error) { return file.New(o, n.Log) }),
		plugins.AddSink(r, "topic", func(o topic.Options) (pipeline.Sink, error) { return topic.New(n.Publisher, o) }),
	)
}
