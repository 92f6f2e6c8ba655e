package pipeline

import (
	"slices"
	"time"
)

// Defaults of a job; the fields that they fill document them.
const (
	defaultLanes         = 1
	defaultTimeout       = 30 * time.Second
	defaultBatchMessages = 256
	defaultBatchEvery    = time.Second
)

// Plan is a job that [Compile] has accepted, with what a runtime needs computed once. It is read by many goroutines and
// must not be changed. Channels go by their index in Job.Channels everywhere in it.
type Plan struct {
	// Job is a copy of the compiled job with every default filled in. Only Retry.DeadLetterTopic may stay empty, which
	// means the group's own, and Batch stays zero in channels that collect nothing.
	Job Job
	// Entry is the channel that messages enter first.
	Entry int
	// Order lists the channels so that each comes before the ones that it routes to; Entry is the first.
	Order []int
	// Targets holds, for each channel, the channel that each of its routes leads to.
	Targets [][]int
	// InPlace says, for each channel, that its failing messages are retried in place until they are finished, since
	// sending one back would let others overtake it in this channel or in one that it came through.
	InPlace []bool

	index map[string]int
}

// Compile checks a job and returns it as a [Plan]. It reports all mistakes of the job at once, in a [*JobError]. The
// job is copied, so that changing it later changes nothing; what its functions, stages and sinks point to is shared.
func Compile(j Job) (*Plan, error) {
	job := withDefaults(j)
	c := check(&job)

	if len(c.mistakes) > 0 {
		return nil, &JobError{Job: j.Name, Mistakes: c.mistakes}
	}

	return &Plan{
		Job:     job,
		Entry:   c.entry,
		Order:   c.order,
		Targets: c.targets,
		InPlace: inPlace(&job, c.order, c.targets),
		index:   c.index,
	}, nil
}

// Index returns the index of the channel with that name.
func (p *Plan) Index(name string) (int, bool) {
	i, ok := p.index[name]

	return i, ok
}

// withDefaults copies a job as deep as the plan promises and fills in what is left empty.
func withDefaults(j Job) Job {
	j.Source.Topics = slices.Clone(j.Source.Topics)
	j.Channels = slices.Clone(j.Channels)
	j.Retry.Attempts = j.Retry.Limit()
	j.Retry.Delays = slices.Clone(j.Retry.ladder())

	if j.Source.Group == "" {
		j.Source.Group = j.Name
	}

	if j.Source.To == "" && len(j.Channels) > 0 {
		j.Source.To = j.Channels[0].Name
	}

	for i := range j.Channels {
		j.Channels[i] = channelWithDefaults(j.Channels[i])
	}

	return j
}

func channelWithDefaults(c Channel) Channel {
	c.Stages = slices.Clone(c.Stages)
	c.Routes = slices.Clone(c.Routes)

	if c.Lanes == 0 {
		c.Lanes = defaultLanes
	}

	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}

	c.Breaker = c.Breaker.withDefaults()

	if c.Gather != nil {
		gather := *c.Gather
		if gather.Name == "" {
			gather.Name = gatherName
		}

		c.Gather = &gather
	}

	if c.collects() {
		c.Batch = c.Batch.withDefaults()
	}

	return c
}

func (b Batch) withDefaults() Batch {
	if b.Every == 0 && (b.Messages != 0 || b.Bytes != 0) {
		b.Every = defaultBatchEvery
	}

	if b.Messages == 0 {
		b.Messages = defaultBatchMessages
	}

	return b
}

// inPlace spreads the need to retry in place from ordered channels to everything that they feed.
func inPlace(job *Job, order []int, targets [][]int) []bool {
	marks := make([]bool, len(job.Channels))

	for _, i := range order {
		if job.Channels[i].Order != OrderNone {
			marks[i] = true
		}

		if marks[i] {
			for _, target := range targets[i] {
				marks[target] = true
			}
		}
	}

	return marks
}
