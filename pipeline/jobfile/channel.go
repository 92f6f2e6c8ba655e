package jobfile

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/pipeline"
)

// uses are the plugins of a channel.
type uses struct {
	stages       []use
	gather, sink *use
}

// use is a plugin with its name in the channel and its options.
type use struct {
	name, plugin string
	options      any
}

// maxLanes is what pipeline allows at most.
const maxLanes = 4096

func (d *decoder) channels(j *Job, n *node) {
	j.at["channels"] = n.at

	switch {
	case n.kind != table:
		d.mistakef(n.at, "channels is %s; it should be a table of channels by their names", n.is())

		return
	case len(n.entries) == 0:
		d.mistakef(n.at, "channels is empty; add at least one")
	}

	for i, e := range n.entries {
		j.at[at(i, "")] = e.at
		j.at[at(i, "name")] = e.at
		d.channel(j, i, e)
	}
}

// at returns the path of a channel, or of a field of it.
func at(channel int, field string) string {
	if field == "" {
		return fmt.Sprintf("channels[%d]", channel)
	}

	return fmt.Sprintf("channels[%d].%s", channel, field)
}

func (d *decoder) channel(j *Job, i int, e entry) {
	if e.value.kind == null {
		e.value = &node{kind: table, at: e.at}
	}

	f := d.fields(e.value, fmt.Sprintf("channel %q", e.key),
		"lanes", "order", "timeout", "breaker", "stages", "batch", "gather", "routes", "sink")
	c := pipeline.Channel{Name: e.key, Lanes: f.integer("lanes", 1, maxLanes), Timeout: f.duration("timeout")}

	switch order := f.oneOf("order", "none", "key", "queue"); order {
	case "":
		j.badOrder = j.badOrder || e.value.get("order") != nil
	case "key":
		c.Order = pipeline.OrderByKey
	case "queue":
		c.Order = pipeline.OrderByQueue
	}

	for _, key := range []string{"order", "breaker", "batch", "gather", "routes", "sink"} {
		if n := e.value.get(key); n != nil {
			j.at[at(i, key)] = n.at
		}
	}

	if n := f.get("breaker"); n != nil {
		c.Breaker = d.breaker(n)
	}

	if n := f.get("batch"); n != nil {
		b := d.fields(n, "batch", "messages", "bytes", "every")
		c.Batch = pipeline.Batch{
			Messages: b.integer("messages", 1, math.MaxInt32), Bytes: b.size("bytes"), Every: b.duration("every"),
		}
	}

	u := d.uses(j, i, f)

	if n := f.get("routes"); n != nil {
		c.Routes = d.routes(j, i, n)
	}

	d.checkEnd(e, f, u)

	j.spec.Channels = append(j.spec.Channels, c)
	j.uses = append(j.uses, u)
}

// checkEnd sees to it that what comes out of a channel goes to one place.
func (d *decoder) checkEnd(e entry, f fields, u uses) {
	sink, routes := e.value.get("sink"), e.value.get("routes")

	switch {
	case sink != nil && u.gather != nil:
		d.mistakef(sink.at, "channel %q has a gather and a sink; route what the gather makes to another channel with this sink",
			e.key)
	case sink != nil && routes != nil:
		d.mistakef(sink.at, "channel %q has routes and a sink; remove one of them, or route to another channel with this sink",
			e.key)
	case f.missing("sink") && f.missing("routes"), routes != nil && routes.kind == list && len(routes.items) == 0:
		d.mistakef(e.at, "channel %q goes nowhere; give it a sink or routes", e.key)
	}
}

func (d *decoder) routes(j *Job, channel int, n *node) []pipeline.Route {
	if n.kind != list {
		d.mistakef(n.at, "routes is %s; it should be a list of { to: channel, when: expression }", n.is())

		return nil
	}

	routes := make([]pipeline.Route, len(n.items))

	for i, item := range n.items {
		path := at(channel, fmt.Sprintf("routes[%d]", i))
		j.at[path], j.at[path+".to"] = item.at, item.at
		routes[i] = d.route(j, path, item)
	}

	d.checkCopies(n, routes)

	return routes
}

func (d *decoder) route(j *Job, path string, n *node) pipeline.Route {
	if n.kind == single {
		return pipeline.Route{To: d.textOf(n, "route")} // to it alone
	}

	f := d.fields(n, "the route", "when", "tag", "to")
	route := pipeline.Route{To: f.text("to")}

	if to := n.get("to"); to != nil {
		j.at[path+".to"] = to.at
	} else if f.missing("to") {
		d.mistakef(n.at, "the route has no to; name the channel that it leads to")
	}

	if n.get("tag") != nil {
		route.When = pipeline.Tagged(f.texts("tag")...)
	}

	if when := f.get("when"); when != nil {
		route.Condition = d.condition(when)
	}

	return route
}

// checkCopies reports routes that lead where another one leads every message already, which then gets there twice.
func (d *decoder) checkCopies(n *node, routes []pipeline.Route) {
	for i, route := range routes {
		for k, other := range routes {
			if k != i && route.To == other.To && route.To != "" && always(n.items[k]) && (k < i || !always(n.items[i])) {
				d.mistakef(n.items[i].at, "routes[%d] leads every message to %q already, so what takes this route gets there "+
					"twice; remove it", k, route.To)

				break
			}
		}
	}
}

// always reports whether a route takes every message.
func always(n *node) bool {
	return n.kind == single || n.kind == table && n.get("when") == nil && n.get("tag") == nil
}
