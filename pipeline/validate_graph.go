package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

// checkGraph looks at the channels and routes as a whole; routes to nowhere have been reported.
func (c *checker) checkGraph() {
	walk := walk{checker: c, state: make([]visit, len(c.job.Channels))}

	if c.entry != unknown {
		walk.from(c.entry)
	}

	for i := range c.job.Channels {
		walk.from(i)
	}

	c.order = walk.done
	slices.Reverse(c.order)

	c.checkReachable()

	if !walk.circular {
		c.checkOrders()
	}
}

// walk is a depth-first walk over the channels.
type walk struct {
	*checker

	state []visit
	path  []int // from where the walk began to where it is
	done  []int // channels in the order in which they were left

	circular bool
}

type visit uint8

const (
	unvisited visit = iota
	onPath
	left
)

func (w *walk) from(i int) {
	if w.state[i] != unvisited {
		return
	}

	w.state[i] = onPath
	w.path = append(w.path, i)

	// Last route first, so that the first one's target comes first in the order, which is the reverse of leaving.
	for r, target := range slices.Backward(w.targets[i]) {
		switch {
		case target == unknown:
		case w.state[target] == onPath:
			w.reportCycle(i, r, target)
		default:
			w.from(target)
		}
	}

	w.path = w.path[:len(w.path)-1]
	w.state[i] = left
	w.done = append(w.done, i)
}

func (w *walk) reportCycle(i, route, target int) {
	w.circular = true

	names := make([]string, 0, len(w.path)+1)
	for _, j := range w.path[slices.Index(w.path, target):] {
		names = append(names, w.job.Channels[j].Name)
	}

	names = append(names, w.job.Channels[target].Name)

	w.report(w.at(i, fmt.Sprintf("routes[%d].to", route)), "the routes go in a circle: "+strings.Join(names, " -> "),
		"remove one of them, or publish to a topic that the job reads to go round again")
}

// checkReachable reports channels that no message can get to. A route to a name that is not there counts for the one
// that was probably meant, so that one slip is one mistake.
func (c *checker) checkReachable() {
	entry := c.entry
	if entry == unknown {
		entry = nearest(c.job.Source.To, c.names)
		if entry == unknown {
			return
		}

		entry = c.index[c.names[entry]]
	}

	reached := make([]bool, len(c.job.Channels))
	c.reach(entry, reached)

	for i, channel := range c.job.Channels {
		if !reached[i] && c.index[channel.Name] == i && channel.Name != "" {
			c.report(c.at(i, "name"), "no message gets here",
				fmt.Sprintf("route to it from a channel that %q leads to, or remove it", c.job.Channels[entry].Name))
		}
	}
}

func (c *checker) reach(i int, reached []bool) {
	if reached[i] {
		return
	}

	reached[i] = true

	for r, target := range c.targets[i] {
		if target == unknown {
			guess := nearest(c.job.Channels[i].Routes[r].To, c.names)
			if guess == unknown {
				continue
			}

			target = c.index[c.names[guess]]
		}

		c.reach(target, reached)
	}
}

// checkOrders reports ordered channels that get their messages out of order. Only the entry reads queues; any other
// channel keeps an order only when what feeds it does: one channel, with the same order or by queue. An unordered one
// breaks it with a single lane too, since its failing messages are overtaken while they are delivered again. Two break
// it since a message that takes one way overtakes one that takes the other.
func (c *checker) checkOrders() {
	feeders := make([][]int, len(c.job.Channels))

	for i, targets := range c.targets {
		for r, target := range targets {
			if target == unknown {
				continue
			}

			if !slices.Contains(feeders[target], i) {
				feeders[target] = append(feeders[target], i)
			}

			c.checkOrder(i, r, target)
		}
	}

	for i, from := range feeders {
		order := c.job.Channels[i].Order
		if order == OrderNone || len(from) <= 1 {
			continue
		}

		names := make([]string, len(from))
		for n, f := range from {
			names[n] = c.job.Channels[f].Name
		}

		c.report(c.at(i, "order"), fmt.Sprintf("it is fed by %s, which overtake each other", strings.Join(names, " and ")),
			"let one channel feed it, or use order none")
	}
}

// checkOrder looks at one route.
func (c *checker) checkOrder(from, route, to int) {
	upper, lower := &c.job.Channels[from], &c.job.Channels[to]
	if lower.Order == OrderNone || upper.Order == OrderByQueue || upper.Order == lower.Order {
		return
	}

	orders := "queue"
	if lower.Order == OrderByKey {
		orders = "key or queue"
	}

	c.report(c.at(to, "order"),
		fmt.Sprintf("routes[%d] of channel %q, whose order is %s, brings messages out of order", route, upper.Name, upper.Order),
		fmt.Sprintf("use order %s in %q, or order none here", orders, upper.Name))
}
