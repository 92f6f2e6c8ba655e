package admin

import (
	"fmt"
	"net/http"
	"path"
	"reflect"
	"runtime"
	"strings"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// Topology is the answer to /api/v1/topology: what jobs are made of, which does not change while they run.
type Topology struct {
	Jobs []JobTopology `json:"jobs"`
}

// JobTopology says what a job is made of.
type JobTopology struct {
	Job    string   `json:"job"`
	Topics []string `json:"topics"`
	Group  string   `json:"group"`
	// Broadcast: every member reads every queue.
	Broadcast bool `json:"broadcast,omitempty"`
	// To is the channel that messages enter first.
	To string `json:"to"`
	// Attempts is the most deliveries of a message.
	Attempts int `json:"attempts"`
	// DeadLetters is the topic of the dead letters; empty means the group's own.
	DeadLetters string `json:"deadLetters,omitempty"`
	// Channels are in the order of the data: each comes before those that it routes to.
	Channels []ChannelTopology `json:"channels"`
}

// ChannelTopology says what a channel is made of.
type ChannelTopology struct {
	Name string `json:"name"`
	// Lanes is how many there are, Order is none, key or queue.
	Lanes int    `json:"lanes"`
	Order string `json:"order"`
	// Timeout is how long a lane may work at a message, such as "30s".
	Timeout string   `json:"timeout"`
	Stages  []string `json:"stages"`
	// Gather is the name of the gather at the end, Sink the kind of the sink; empty means that there is none.
	Gather string          `json:"gather,omitempty"`
	Sink   string          `json:"sink,omitempty"`
	Routes []RouteTopology `json:"routes,omitempty"`
}

// RouteTopology is a way to another channel.
type RouteTopology struct {
	To string `json:"to"`
	// Picks says that only messages which meet a condition take it.
	Picks bool `json:"picks,omitempty"`
}

// topology answers with what the jobs are made of, or one: ?job=.
func (h *handler) topology(r *http.Request) (any, error) {
	jobs, err := h.o.Jobs.named(r.URL.Query().Get(jobKey))
	if err != nil {
		return nil, err
	}

	t := Topology{Jobs: []JobTopology{}}
	for _, job := range jobs {
		t.Jobs = append(t.Jobs, topologyOf(job))
	}

	return t, nil
}

func topologyOf(r *actors.Running) JobTopology {
	plan := r.Plan()
	source := plan.Job.Source
	t := JobTopology{
		Job: r.Name(), Topics: source.Topics, Group: source.Group, Broadcast: source.Broadcast, To: source.To,
		Attempts: plan.Job.Retry.Attempts, DeadLetters: plan.Job.Retry.DeadLetterTopic,
	}

	for _, i := range plan.Order {
		t.Channels = append(t.Channels, channelTopology(plan.Job.Channels[i]))
	}

	return t
}

func channelTopology(c pipeline.Channel) ChannelTopology {
	t := ChannelTopology{Name: c.Name, Lanes: c.Lanes, Order: c.Order.String(), Timeout: c.Timeout.String(), Stages: []string{}}

	for _, stage := range c.Stages {
		t.Stages = append(t.Stages, stage.Name)
	}

	if c.Gather != nil {
		t.Gather = c.Gather.Name
	}

	if c.Sink != nil {
		t.Sink = kindOf(c.Sink)
	}

	for _, route := range c.Routes {
		t.Routes = append(t.Routes, RouteTopology{To: route.To, Picks: route.When != nil || route.Condition != nil})
	}

	return t
}

// wrapper is a sink around another one.
type wrapper interface{ Unwrap() pipeline.Sink }

// kindOf names a sink for people: by itself where it has a String, a function by its name, else by the package of its type,
// which for a plugin is its name, and by the type, unless that is just Sink.
func kindOf(sink pipeline.Sink) string {
	// What is wrapped, as for tracing, is called as without.
	for w, ok := sink.(wrapper); ok; w, ok = sink.(wrapper) {
		sink = w.Unwrap()
	}

	if s, ok := sink.(fmt.Stringer); ok {
		return s.String()
	}

	if v := reflect.ValueOf(sink); v.Kind() == reflect.Func {
		return nameOf(runtime.FuncForPC(v.Pointer()))
	}

	t := reflect.TypeOf(sink)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	switch name := t.Name(); name {
	case "":
		return "sink"
	case "Sink":
		return path.Base(t.PkgPath())
	default:
		return path.Base(t.PkgPath()) + "." + name
	}
}

// nameOf returns the package and the name of a function, of one without a name the function that it stands in.
func nameOf(f *runtime.Func) string {
	if f == nil {
		return "sink"
	}

	name := strings.TrimSuffix(path.Base(f.Name()), "-fm") // which the value of a method has

	if i := strings.Index(name, ".func"); i > 0 {
		name = name[:i]
	}

	return name
}
