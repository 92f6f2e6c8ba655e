package jobfile

import (
	"context"
	"errors"
	"regexp"
	"strings"

	"github.com/millrace/millrace/pipeline"
)

// lint compiles the job with nothing in its plugins, for what pipeline knows of names, routes, circles and orders.
func (d *decoder) lint(j *Job) {
	skeleton := j.spec
	skeleton.Channels = make([]pipeline.Channel, len(j.spec.Channels))

	for i, c := range j.spec.Channels {
		u := j.uses[i]

		for _, s := range u.stages {
			c.Stages = append(c.Stages, pipeline.Func(s.name, pass))
		}

		if u.gather != nil {
			c.Gather = &pipeline.GatherStage{Name: u.gather.name, New: nothingGathered}
		}

		switch {
		case len(c.Routes) == 0:
			// What is wrong with the end of a channel has been said in the words of the file.
			c.Sink, c.Gather = pipeline.Discard, nil
		case u.gather == nil:
			d.lintBatch(j, i, c)

			c.Batch = pipeline.Batch{}
		}

		skeleton.Channels[i] = c
	}

	_, err := pipeline.Compile(skeleton)

	wrong, ok := errors.AsType[*pipeline.JobError](err)
	if !ok {
		return
	}

	disordered := make(map[Place]bool)

	for _, m := range wrong.Mistakes {
		if m.Problem == "it is empty" && (strings.HasSuffix(m.Path, ".to") || strings.HasPrefix(m.Path, "source.")) {
			continue // said already
		}

		at := j.find(m.Path)

		if strings.HasSuffix(m.Path, ".order") {
			if j.badOrder || disordered[at] {
				continue // one is enough, and what comes of a mistake is none
			}

			disordered[at] = true
		}

		d.mistakef(at, "%s", inWords(m))
	}
}

func (d *decoder) lintBatch(j *Job, i int, c pipeline.Channel) {
	if c.Batch != (pipeline.Batch{}) && j.uses[i].sink == nil {
		d.mistakef(j.find(at(i, "batch")), "nothing in channel %q takes batches; move batch to a channel with a sink or a gather",
			c.Name)
	}
}

func pass(_ context.Context, m *pipeline.Message, emit pipeline.Emit) error { return emit(m) }

func nothingGathered() (pipeline.BatchTransform, error) {
	return pipeline.BatchTransformFunc(func(context.Context, []*pipeline.Message, pipeline.Emit) error { return nil }), nil
}

// channelName is the name of a channel in a path of pipeline.
var channelName = regexp.MustCompile(` "[^"]*"`)

// find returns where a path of pipeline stands in the file, or the nearest thing around it that has a place.
func (j *Job) find(path string) Place {
	path = channelName.ReplaceAllString(path, "")

	for {
		if at, ok := j.at[path]; ok {
			return at
		}

		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
}

// inWords says a mistake of pipeline in the words of a job file.
func inWords(m pipeline.Mistake) string {
	path := channelName.ReplaceAllString(m.Path, "")

	switch {
	case strings.HasSuffix(path, ".name") && strings.HasPrefix(m.Problem, "no message"):
		return "no message gets to channel " + channelOf(m.Path) + "; " + m.Cure
	case strings.HasSuffix(path, ".order"):
		return "channel " + channelOf(m.Path) + " cannot keep its order: " + m.Problem + "; " + m.Cure
	default:
		return m.Problem + "; " + m.Cure
	}
}

// channelOf returns the channel of a path, in quotes.
func channelOf(path string) string {
	return strings.TrimSpace(channelName.FindString(path))
}
