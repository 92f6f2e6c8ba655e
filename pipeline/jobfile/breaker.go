package jobfile

import (
	"math"
	"strconv"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// The values of breaker.mode, which may also stand for the breaker alone.
const (
	breakerOn  = "on"
	breakerOff = "off"
)

func breakerKeys() []plugins.Option {
	return []plugins.Option{
		{
			Name: "mode", Type: typeText, Values: []string{breakerOn, breakerOff}, Default: breakerOn, Main: true,
			Help: "Whether there is one. Without it everything goes to the dead letters when what the channel needs is down.",
		},
		{
			Name: "ratio", Type: "number", Default: "0.8",
			Help: "The share of failures among the attempts looked at from which on the channel pauses, above 0 and at most 1.",
		},
		{
			Name: "window", Type: typeInteger, Default: "20",
			Help: "How many attempts are looked at, 2 to 64; half of them must have been seen.",
		},
		{Name: "pause", Type: typeDuration, Default: "1s", Help: "The time until a message is tried; it doubles."},
		{Name: "max_pause", Type: typeDuration, Default: "1m", Help: "The longest time between two tries."},
		{
			Name: "patience", Type: typeDuration, Default: "1h",
			Help: "How long what is tried counts as no attempt, so that nothing goes to the dead letters.",
		},
	}
}

// breaker returns the breaker of a channel, which may be its mode alone.
func (d *decoder) breaker(n *node) pipeline.Breaker {
	if n.kind == single {
		n = &node{kind: table, at: n.at, entries: []entry{{key: "mode", at: n.at, value: n}}}
	}

	f := d.fields(n, "breaker", "mode", "ratio", "window", "pause", "max_pause", "patience")
	b := pipeline.Breaker{
		Off: f.oneOf("mode", breakerOn, breakerOff) == breakerOff, Ratio: f.ratio(), Window: f.integer("window", 2, maxWindow),
		Pause: f.duration("pause"), MaxPause: f.duration("max_pause"), Patience: f.duration("patience"),
	}

	if b.Off && len(n.entries) > 1 {
		d.mistakef(n.at, "breaker is off and has settings; remove one or the other")

		return pipeline.Breaker{Off: true}
	}

	return b
}

// maxWindow is what pipeline allows at most. A window of one would take any failure for that of something else.
const maxWindow = 64

// ratio returns the ratio of a breaker; 0 when it is not there.
func (f fields) ratio() float64 {
	n := f.get("ratio")
	if n == nil {
		return 0
	}

	r, err := strconv.ParseFloat(n.text, 64)
	if n.kind != single || err != nil || math.IsNaN(r) || r <= 0 || r > 1 {
		f.mistakef(n.at, "ratio is %s; it should be a number above 0 and at most 1, such as 0.8", n.shown())

		return 0
	}

	return r
}
