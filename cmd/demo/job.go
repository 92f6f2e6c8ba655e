package main

import (
	"time"

	"github.com/millrace/millrace/pipeline"
)

// The topics of the demo, which are its groups' and jobs' names too where they are the input of one.
const (
	quakesTopic = "quakes"
	alertsTopic = "alerts"
	quakesDead  = "quakes-dead"
	alertsDead  = "alerts-dead"
)

// topics returns the topics of the demo with how many queues they have.
func topics() map[string]int {
	return map[string]int{quakesTopic: 4, alertsTopic: 1, quakesDead: 1, alertsDead: 1}
}

// parts are what the jobs are put together from beside their stages.
type parts struct {
	// run is the number that the marks of this run carry.
	run int
	// trouble is the stage that does what the flags ask for.
	trouble pipeline.Stage
	// archive, summaries and alerts are files, alertsTopic a topic.
	archive, summaries, alerts, alertsTopic pipeline.Sink
	retry                                   retryOptions
}

// retryOptions are the retry policy of both jobs, made small so that a demo ends.
type retryOptions struct {
	attempts int
	delay    time.Duration
	timeout  time.Duration
}

func (r retryOptions) policy(dead string) pipeline.RetryPolicy {
	return pipeline.RetryPolicy{
		Attempts:        r.attempts,
		Delays:          []time.Duration{r.delay, 2 * r.delay},
		DeadLetterTopic: dead,
	}
}

// quakesJob reads the feed's topic. Events fan out to the archive, the summaries and the alerts; the archive is fed by
// two channels.
func quakesJob(p parts) pipeline.Job {
	notable := pipeline.Tagged(moderate, major)

	return pipeline.Job{
		Name:   quakesTopic,
		Source: pipeline.Source{Topics: []string{quakesTopic}},
		Retry:  p.retry.policy(quakesDead),
		Channels: []pipeline.Channel{
			{
				Name: "classify", Lanes: 4, Timeout: p.retry.timeout,
				Stages: []pipeline.Stage{
					p.trouble,
					pipeline.Func("decode", decode(p.run)),
					pipeline.Func("enrich", enrich),
					pipeline.Filter("quakes-only", pipeline.PropIs(propType, earthquake)),
				},
				Routes: []pipeline.Route{
					{To: "notable", When: notable},
					{To: "archive", When: pipeline.Tagged(minor)},
					{To: "regions"},
				},
			},
			{
				Name:   "notable",
				Stages: []pipeline.Stage{pipeline.Func("headline", headline)},
				Routes: []pipeline.Route{{To: "alerts", When: pipeline.Tagged(major)}, {To: "archive"}},
			},
			{
				Name:   "regions",
				Batch:  pipeline.Batch{Messages: 200, Every: 200 * time.Millisecond},
				Gather: gatherer("summarise", summarise),
				Routes: []pipeline.Route{{To: "summaries"}},
			},
			{Name: "summaries", Sink: p.summaries},
			{Name: "alerts", Stages: []pipeline.Stage{pipeline.Func("derive", derive)}, Sink: p.alertsTopic},
			{Name: "archive", Batch: pipeline.Batch{Messages: 500, Every: 200 * time.Millisecond}, Sink: p.archive},
		},
	}
}

// alertsJob reads the topic that quakesJob publishes to.
func alertsJob(p parts) pipeline.Job {
	return pipeline.Job{
		Name:   alertsTopic,
		Source: pipeline.Source{Topics: []string{alertsTopic}},
		Retry:  p.retry.policy(alertsDead),
		Channels: []pipeline.Channel{{
			Name:   "write",
			Stages: []pipeline.Stage{pipeline.Func("receive", receive(p.run))},
			Sink:   p.alerts,
		}},
	}
}

func gatherer(name string, f pipeline.BatchTransformFunc) *pipeline.GatherStage {
	return &pipeline.GatherStage{Name: name, New: func() (pipeline.BatchTransform, error) { return f, nil }}
}
