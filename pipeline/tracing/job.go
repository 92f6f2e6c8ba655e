// Package tracing follows messages through a job with spans of OpenTelemetry: one for each stage, gather and sink that works on
// a message, each the child of the one before, also across channels, topics and jobs.
//
// What ties them together travels with the message, in the property "traceparent" as W3C's Trace Context writes it. So a
// trace that a producer has begun goes on in the job, and that of the job in whoever reads the topics that it writes.
//
// Nothing of this is in the way of jobs that are not traced: [Job] wraps the plugins of those that are.
package tracing

import (
	"cmp"
	"slices"

	"go.opentelemetry.io/otel/trace"

	"github.com/millrace/millrace/pipeline"
)

// Options say which messages are followed. Only Tracer must be set.
type Options struct {
	// Tracer makes the spans. What it samples of them is up to it; nothing is gained by asking it to leave out some of those that
	// Share has chosen.
	Tracer trace.Tracer
	// Share is how many messages begin a trace where they come in, from 0 to 1: 0.01 is one of a hundred. Those that bring one
	// follow it: their producer has decided.
	Share float64
	// Redact takes secrets out of the errors that spans show; nil leaves them as they are.
	Redact func(string) string
}

// Job returns the job with its stages, gathers and sinks wrapped. The job that it is given is not changed.
func Job(job pipeline.Job, o Options) pipeline.Job {
	if o.Redact == nil {
		o.Redact = func(s string) string { return s }
	}

	job.Channels = slices.Clone(job.Channels)

	for i := range job.Channels {
		c := &job.Channels[i]

		// Where a message comes in, and nowhere else, a trace may begin.
		entry := c.Name == cmp.Or(job.Source.To, job.Channels[0].Name)
		next := func(stage string) step {
			s := step{options: o, job: job.Name, channel: c.Name, stage: stage, entry: entry}
			entry = false

			return s
		}

		c.Stages = slices.Clone(c.Stages)
		for j, stage := range c.Stages {
			c.Stages[j].New = wrapTransform(next(stage.Name), stage.New)
		}

		if g := c.Gather; g != nil {
			c.Gather = &pipeline.GatherStage{
				Name: g.Name, New: wrapGather(next(cmp.Or(g.Name, "gather")), g.New),
			}
		}

		if c.Sink != nil {
			c.Sink = &sink{life: life{c.Sink}, step: next("sink"), inner: c.Sink}
		}
	}

	return job
}

func wrapTransform(s step, inner func() (pipeline.Transform, error)) func() (pipeline.Transform, error) {
	return func() (pipeline.Transform, error) {
		t, err := inner()
		if err != nil {
			return nil, err
		}

		return &transform{life: life{t}, step: s, inner: t}, nil
	}
}

func wrapGather(s step, inner func() (pipeline.BatchTransform, error)) func() (pipeline.BatchTransform, error) {
	return func() (pipeline.BatchTransform, error) {
		g, err := inner()
		if err != nil {
			return nil, err
		}

		return &gather{life: life{g}, step: s, inner: g}, nil
	}
}
