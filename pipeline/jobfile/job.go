package jobfile

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Job is one job of a file. Its plugins are known and their options are right; Build makes it run.
type Job struct {
	// Place is where the job's document begins.
	Place

	// Name is the job's name.
	Name string

	// spec is the job without its plugins.
	spec pipeline.Job
	// uses are the plugins of each channel.
	uses     []uses
	registry *plugins.Registry
	// at maps paths of pipeline's mistakes to where they stand.
	at map[string]Place
	// badOrder: the order of a channel could not be read.
	badOrder bool
}

// Topics returns the topics that the job reads.
func (j *Job) Topics() []string { return j.spec.Source.Topics }

// Group returns the consumer group of the job.
func (j *Job) Group() string {
	if j.spec.Source.Group == "" {
		return j.Name
	}

	return j.spec.Source.Group
}

// Broadcast reports whether every member reads everything, so that failed messages are dropped.
func (j *Job) Broadcast() bool { return j.spec.Source.Broadcast }

// DeadLetters returns the topic of the job's dead letters; empty means the group's own.
func (j *Job) DeadLetters() string { return j.spec.Retry.DeadLetterTopic }

// SinkUse is a sink of a job, as the file says it.
type SinkUse struct {
	// Channel is the channel that ends in the sink.
	Channel string
	// Plugin and Options are what the file says; options that come from a variable are in it.
	Plugin  string
	Options any
}

// Sinks returns the sinks of the job, in the order of the channels.
func (j *Job) Sinks() []SinkUse {
	var sinks []SinkUse

	for i, u := range j.uses {
		if u.sink != nil {
			sinks = append(sinks, SinkUse{
				Channel: j.spec.Channels[i].Name, Plugin: u.sink.plugin, Options: u.sink.options,
			})
		}
	}

	return sinks
}

// Build makes the job with the plugins that it names. Sinks are made now, stages and gathers when their lanes start. The
// error is that of a plugin.
func (j *Job) Build(env plugins.Env) (pipeline.Job, error) {
	return j.BuildWith(env, nil)
}

// BuildWith is Build, with other sinks in place of those of the file: replace is asked for each and may return nil to keep
// it. A nil replace keeps them all. It is for tests of jobs.
func (j *Job) BuildWith(env plugins.Env, replace func(SinkUse) pipeline.Sink) (pipeline.Job, error) {
	job := j.spec
	job.Channels = make([]pipeline.Channel, len(j.spec.Channels))

	for i, c := range j.spec.Channels {
		built, err := j.channel(c, j.uses[i], env, replace)
		if err != nil {
			return pipeline.Job{}, fmt.Errorf("jobfile: job %q: channel %q: %w", j.Name, c.Name, err)
		}

		job.Channels[i] = built
	}

	return job, nil
}

func (j *Job) channel(
	c pipeline.Channel, u uses, env plugins.Env, replace func(SinkUse) pipeline.Sink,
) (pipeline.Channel, error) {
	c.Stages = make([]pipeline.Stage, len(u.stages))

	for i, s := range u.stages {
		stage, err := j.registry.Stage(s.name, s.plugin, s.options, env)
		if err != nil {
			return c, err //nolint:wrapcheck // the caller says where
		}

		c.Stages[i] = stage
	}

	if u.gather != nil {
		gather, err := j.registry.Gather(u.gather.name, u.gather.plugin, u.gather.options, env)
		if err != nil {
			return c, err //nolint:wrapcheck // the caller says where
		}

		c.Gather = gather
	}

	if u.sink == nil {
		return c, nil
	}

	if replace != nil {
		c.Sink = replace(SinkUse{Channel: c.Name, Plugin: u.sink.plugin, Options: u.sink.options})
		if c.Sink != nil {
			return c, nil
		}
	}

	sink, err := j.registry.Sink(u.sink.plugin, u.sink.options, env)
	c.Sink = sink

	return c, err //nolint:wrapcheck // the caller says where
}

// job reads one document.
func (d *decoder) job(doc *node) *Job {
	f := d.fields(doc, "the job", keyName, "broker", "source", "retry", "channels")
	j := &Job{Place: doc.at, registry: d.registry, at: map[string]Place{"": doc.at, keyName: doc.at}}

	j.Name = f.text(keyName)
	if n := doc.get(keyName); n != nil {
		j.at[keyName] = n.at
	} else if f.missing(keyName) {
		d.mistakef(doc.at, "the job has no name; add name: and a name of letters, digits, '.', '_' and '-'")
	}

	j.spec.Name = j.Name

	if n := f.get("source"); n != nil {
		d.source(j, n)
	} else if f.missing("source") {
		d.mistakef(doc.at, "the job has no source; add source: { topic: … }")
	}

	if n := f.get("retry"); n != nil {
		d.retry(j, n)
	}

	if n := f.get("channels"); n != nil {
		d.channels(j, n)
	} else if f.missing("channels") {
		d.mistakef(doc.at, "the job has no channels; add channels: with at least one")
	}

	if len(j.spec.Channels) > 0 && j.Name != "" && len(j.spec.Source.Topics) > 0 {
		d.lint(j)
	}

	return j
}

func (d *decoder) source(j *Job, n *node) {
	f := d.fields(n, "source", "topic", "topics", "group", "start", "broadcast", "to")
	s := &j.spec.Source
	j.at["source"] = n.at

	s.Topics = append(f.texts("topic"), f.texts("topics")...)

	one, many := n.get("topic"), n.get("topics")

	switch {
	case n.kind != table:
	case one != nil && many != nil:
		d.mistakef(many.at, "source has topic and topics; put them all into topics")
	case f.missing("topic") && f.missing("topics"):
		d.mistakef(n.at, "source has no topic; name one to read")
	}

	for _, t := range []*node{one, many} {
		if t == nil {
			continue
		}

		j.at["source.topics"] = t.at
		for i, item := range t.items {
			j.at[fmt.Sprintf("source.topics[%d]", i)] = item.at
		}
	}

	s.Group, s.Broadcast, s.To = f.text("group"), f.truth("broadcast"), f.text("to")
	for _, key := range []string{"group", "to"} {
		if value := n.get(key); value != nil {
			j.at["source."+key] = value.at
		}
	}

	if start := f.get("start"); start != nil {
		s.Start = d.start(start)
	}
}

func (d *decoder) start(n *node) pipeline.Start {
	switch n.text {
	case "first":
		return pipeline.First
	case "last":
		return pipeline.Last
	}

	t, err := time.Parse(time.RFC3339, n.text)
	if err != nil {
		d.mistakef(n.at, "start is %s; it should be first, last or a time such as 2026-01-31T12:00:00Z", n.is())
	}

	return pipeline.StartAt(t)
}

// maxAttempts is a guess at what is certainly a slip of the pen.
const maxAttempts = 1_000_000

func (d *decoder) retry(j *Job, n *node) {
	f := d.fields(n, "retry", "attempts", "delay", "dead_letter")
	j.at["retry"] = n.at

	j.spec.Retry = pipeline.RetryPolicy{
		Attempts:        f.integer("attempts", 1, maxAttempts),
		Delays:          f.durations("delay"),
		DeadLetterTopic: f.text("dead_letter"),
	}

	if dead := n.get("dead_letter"); dead != nil {
		j.at["retry.deadLetterTopic"] = dead.at
	}
}
