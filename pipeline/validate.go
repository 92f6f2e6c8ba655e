package pipeline

import (
	"fmt"
	"slices"
)

// maxLanes bounds Channel.Lanes: every lane is an actor with instances of all stages. The number is a guess at what is
// certainly a slip of the pen.
const maxLanes = 4096

// The names that reports use for the end of a channel; a stage cannot have them.
const (
	sinkName   = "sink"
	gatherName = "gather"
)

// checker collects the mistakes of one job, and on the way what a plan holds.
type checker struct {
	job      *Job
	mistakes []Mistake

	names []string       // of the channels, each once, without the empty one
	index map[string]int // of the first channel with the name

	entry   int // -1 when Source.To is unknown
	targets [][]int
	order   []int
}

// unknown stands for the channel that a wrong name leads to.
const unknown = -1

// check looks at a job whose defaults are filled in.
func check(job *Job) *checker {
	c := &checker{job: job, index: make(map[string]int, len(job.Channels))}

	c.checkName("name", job.Name)
	c.indexChannels()
	c.checkSource()

	for i := range job.Channels {
		c.checkChannel(i)
	}

	c.checkGraph()
	c.checkRetry()

	return c
}

func (c *checker) report(path, problem, cure string) {
	c.mistakes = append(c.mistakes, Mistake{Path: path, Problem: problem, Cure: cure})
}

// at returns the path of a field of a channel.
func (c *checker) at(channel int, field string) string {
	path := fmt.Sprintf("channels[%d]", channel)
	if name := c.job.Channels[channel].Name; name != "" {
		path += fmt.Sprintf(" %q", name)
	}

	return path + "." + field
}

func (c *checker) checkName(path, name string) {
	switch {
	case name == "":
		c.report(path, "it is empty", "give it a name of letters, digits, '.', '_' and '-'")
	case !legalName(name):
		c.report(path, fmt.Sprintf("%q is not a legal name", name), "use only letters, digits, '.', '_' and '-'")
	}
}

// legalName reports whether a name can be a part of actor names, file names and metrics.
func legalName(name string) bool {
	for i := range len(name) {
		b := name[i]

		letter := 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if !letter && (b < '0' || b > '9') && b != '.' && b != '_' && b != '-' {
			return false
		}
	}

	return name != ""
}

func (c *checker) indexChannels() {
	for i, channel := range c.job.Channels {
		if _, ok := c.index[channel.Name]; ok || channel.Name == "" {
			continue
		}

		c.index[channel.Name] = i
		c.names = append(c.names, channel.Name)
	}
}

func (c *checker) checkSource() {
	source := &c.job.Source

	if len(source.Topics) == 0 {
		c.report("source.topics", "there are none", "name at least one topic to read")
	}

	for i, topic := range source.Topics {
		path := fmt.Sprintf("source.topics[%d]", i)
		if topic == "" {
			c.report(path, "it is empty", "name a topic or remove it")
		} else if slices.Contains(source.Topics[:i], topic) {
			c.report(path, fmt.Sprintf("topic %q is there already", topic), "remove it")
		}
	}

	switch {
	case len(c.job.Channels) == 0:
		c.entry = unknown
		c.report("channels", "there are none", "add at least one")
	case source.To == "":
		c.entry = 0 // which has no name, a mistake of its own
	default:
		c.entry = c.lookUp("source.to", source.To)
	}
}

// lookUp returns the index of a channel by its name, or unknown.
func (c *checker) lookUp(path, name string) int {
	if i, ok := c.index[name]; ok {
		return i
	}

	if name == "" {
		c.report(path, "it is empty", Suggest(name, c.names))
	} else {
		c.report(path, fmt.Sprintf("no channel %q", name), Suggest(name, c.names))
	}

	return unknown
}

func (c *checker) checkRetry() {
	retry, source := &c.job.Retry, &c.job.Source

	c.checkNotNegative("retry.attempts", int64(retry.Attempts))

	for i, delay := range retry.Delays {
		c.checkNotNegative(fmt.Sprintf("retry.delays[%d]", i), int64(delay))
	}

	const path = "retry.deadLetterTopic"

	topic := retry.DeadLetterTopic
	if topic == "" {
		topic = "%DLQ%" + source.Group
	} else if source.Broadcast {
		c.report(path, "a broadcast job drops what fails, it has no dead letters", "remove the topic, or source.broadcast")
	}

	if slices.Contains(source.Topics, topic) {
		c.report(path, fmt.Sprintf("the job reads its own dead letters in %q, round and round", topic),
			"let them go to another topic, or read them by another job")
	}
}

func (c *checker) checkNotNegative(path string, n int64) {
	if n < 0 {
		c.report(path, "it is negative", "use a positive value, or 0 for the default")
	}
}
