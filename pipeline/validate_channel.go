package pipeline

import "fmt"

// collects reports whether a channel has something that takes batches.
func (c *Channel) collects() bool { return c.Sink != nil || c.Gather != nil }

// checkChannel looks at one channel by itself and resolves its routes.
func (c *checker) checkChannel(i int) {
	channel := &c.job.Channels[i]

	c.checkName(c.at(i, "name"), channel.Name)

	if first, ok := c.index[channel.Name]; ok && first != i {
		c.report(c.at(i, "name"), fmt.Sprintf("channels[%d] has the same name", first), "rename one of them")
	}

	c.checkNotNegative(c.at(i, "lanes"), int64(channel.Lanes))

	if channel.Lanes > maxLanes {
		c.report(c.at(i, "lanes"), fmt.Sprintf("%d lanes are too many", channel.Lanes), fmt.Sprintf("use at most %d", maxLanes))
	}

	if channel.Order > OrderByQueue {
		c.report(c.at(i, "order"), "unknown order", "use OrderNone, OrderByKey or OrderByQueue")
	}

	c.checkNotNegative(c.at(i, "timeout"), int64(channel.Timeout))
	c.checkBreaker(i)
	c.checkStages(i)
	c.checkBatch(i)
	c.checkEnd(i)

	targets := make([]int, len(channel.Routes))
	for r, route := range channel.Routes {
		targets[r] = c.lookUp(c.at(i, fmt.Sprintf("routes[%d].to", r)), route.To)
	}

	c.targets = append(c.targets, targets)
}

func (c *checker) checkStages(i int) {
	channel := &c.job.Channels[i]
	seen := map[string]string{sinkName: "", gatherName: ""}

	for s, stage := range channel.Stages {
		field := fmt.Sprintf("stages[%d]", s)
		c.checkStage(i, field, stage.Name, seen)

		if stage.New == nil {
			c.report(c.at(i, field+".new"), "it is nil", "give it a function that makes the transform")
		}
	}

	if channel.Gather == nil {
		return
	}

	delete(seen, gatherName)
	c.checkStage(i, gatherName, channel.Gather.Name, seen)

	if channel.Gather.New == nil {
		c.report(c.at(i, "gather.new"), "it is nil", "give it a function that makes the batch transform")
	}
}

// checkStage looks at the name of a stage. Seen maps the names that are taken to where, reserved ones to nowhere.
func (c *checker) checkStage(i int, field, name string, seen map[string]string) {
	path := c.at(i, field+".name")
	c.checkName(path, name)

	where, taken := seen[name]

	switch {
	case taken && where == "":
		c.report(path, fmt.Sprintf("%q is what reports call the end of a channel", name), "rename the stage")
	case taken:
		c.report(path, where+" has the same name", "rename one of them")
	case name != "":
		seen[name] = field
	}
}

func (c *checker) checkBatch(i int) {
	channel := &c.job.Channels[i]
	batch := channel.Batch

	c.checkNotNegative(c.at(i, "batch.messages"), int64(batch.Messages))
	c.checkNotNegative(c.at(i, "batch.bytes"), batch.Bytes)
	c.checkNotNegative(c.at(i, "batch.every"), int64(batch.Every))

	if !channel.collects() && batch != (Batch{}) {
		c.report(c.at(i, "batch"), "nothing in the channel takes batches",
			"remove it, or move it to a channel with a sink or a gather")
	}
}

// checkEnd sees to it that the outputs of a channel go to one place.
func (c *checker) checkEnd(i int) {
	channel := &c.job.Channels[i]
	path := c.at(i, sinkName)

	switch sink, routes := channel.Sink != nil, len(channel.Routes) > 0; {
	case sink && channel.Gather != nil:
		c.report(path, "the channel has a gather too", "route the gather's outputs to another channel with this sink")
	case sink && routes:
		c.report(path, "the channel has routes too", "remove the routes, or route to another channel with this sink")
	case !sink && !routes && channel.Gather != nil:
		c.report(c.at(i, "routes"), "the outputs of the gather go nowhere", "give the channel a route")
	case !sink && !routes:
		c.report(path, "the outputs of the channel go nowhere", "give it a sink, a route, or pipeline.Discard")
	}
}
