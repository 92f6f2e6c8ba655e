package actors

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// spec is a random job, as data: what its stages make of a message depends on nothing but the seed and the message's path,
// so that the ends that a message must reach are known before it is published.
type spec struct {
	queues int
	// start is where the group begins; broadcast: each process reads all of it and drops what fails.
	start     pipeline.Start
	broadcast bool
	channels  []channelSpec
	ordered   bool
	retry     pipeline.RetryPolicy
	opts      Options
	mood      mood
	// poison is how many in a thousand messages fail for good.
	poison uint64
}

type channelSpec struct {
	name    string
	lanes   int
	order   pipeline.Order
	timeout time.Duration
	// stages are called in order; the first one marks the path with the channel.
	stages  []stageKind
	batch   pipeline.Batch
	breaker pipeline.Breaker
	gather  gatherKind
	routes  []routeSpec
	// behind: what comes here may have been gathered.
	behind bool
	fed    int
}

type routeSpec struct {
	to int
	// half: the route takes half of the messages.
	half bool
}

type (
	stageKind  uint8
	gatherKind uint8
)

const (
	stageMark stageKind = iota
	stageSame
	stageFilter
	stageFan
)

// endOf is the number of a channel's sink or gather stage.
const endOf = 99

const (
	gatherNot gatherKind = iota
	// gatherOne makes one message of a batch, gatherEach one for each of its messages, gatherNone none at all.
	gatherOne
	gatherEach
	gatherNone
)

// mood are the rates of misbehaviour, as shares of 1.
type mood struct {
	fail, again, reject, panics, hang, slow, heed, partial, late float64
}

func newSpec(rnd *rand.Rand, now time.Time) *spec {
	s := &spec{queues: 1 + rnd.IntN(4), ordered: rnd.IntN(2) == 0, poison: uint64(rnd.IntN(3) * 30)}
	s.retry = pipeline.RetryPolicy{Attempts: 1 + rnd.IntN(5)}

	for range 1 + rnd.IntN(3) {
		s.retry.Delays = append(s.retry.Delays, time.Duration(rnd.IntN(5000))*time.Millisecond)
	}

	s.opts = Options{
		CommitEvery:  time.Duration(1+rnd.IntN(8000)) * time.Millisecond,
		RevokeBudget: time.Duration(1+rnd.IntN(6000)) * time.Millisecond,
		DrainBudget:  time.Duration(1+rnd.IntN(30000)) * time.Millisecond,
		HungLanes:    10_000,
		Limits:       consumer.Limits{Messages: 1 + rnd.IntN(40), Bytes: int64(20 + rnd.IntN(2000)), Span: int64(1 + rnd.IntN(200))},
	}

	if rnd.IntN(4) == 0 {
		s.opts.Limits = consumer.Limits{}
	}

	rate := func() float64 {
		if rnd.IntN(2) == 0 {
			return 0
		}

		return rnd.Float64() * 0.08
	}
	s.mood = mood{
		fail: rate(), again: rate(), reject: rate() / 4, panics: rate() / 2, hang: rate() / 8, slow: rate(), heed: rate() / 2,
		partial: rate(), late: rate() / 4,
	}

	s.drawChannels(rnd)
	s.broadcast = rnd.IntN(6) == 0

	switch rnd.IntN(4) {
	case 0:
		s.start = pipeline.Last
	case 1:
		s.start = pipeline.StartAt(now.Add(time.Duration(rnd.IntN(20000)) * time.Millisecond))
	}

	return s
}

func (s *spec) drawChannels(rnd *rand.Rand) {
	n := 1 + rnd.IntN(4)
	s.channels = make([]channelSpec, n)

	for i := range s.channels {
		c := &s.channels[i]
		c.name = fmt.Sprintf("c%d", i)
		c.lanes = 1 + rnd.IntN(3)
		c.timeout = time.Duration(20+rnd.IntN(5000)) * time.Millisecond
		c.stages = []stageKind{stageMark}

		for range rnd.IntN(3) {
			kind := stageKind(1 + rnd.IntN(3))
			if c.behind {
				kind = stageSame
			}

			c.stages = append(c.stages, kind)
		}

		if rnd.IntN(2) == 0 {
			c.batch = pipeline.Batch{Messages: 1 + rnd.IntN(12), Every: time.Duration(1+rnd.IntN(2000)) * time.Millisecond}
		}

		if rnd.IntN(4) == 0 {
			c.batch.Bytes = int64(1 + rnd.IntN(200))
		}

		s.drawEnd(rnd, i)
	}

	s.drawOrders(rnd)

	for i := range s.channels {
		s.channels[i].breaker = drawBreaker(rnd)
	}
}

// drawBreaker draws a breaker, which is less patient than most, so that a run comes to its end.
func drawBreaker(rnd *rand.Rand) pipeline.Breaker {
	if rnd.IntN(4) == 0 {
		return pipeline.Breaker{Off: true}
	}

	pause := time.Duration(1+rnd.IntN(3000)) * time.Millisecond

	return pipeline.Breaker{
		Ratio: 0.5 + rnd.Float64()/2, Window: 4 + rnd.IntN(20), Pause: pause, MaxPause: pause * time.Duration(1+rnd.IntN(4)),
		Patience: time.Duration(1+rnd.IntN(40)) * time.Second,
	}
}

// drawEnd gives a channel its routes, and sees to it that every later channel is fed by an earlier one.
func (s *spec) drawEnd(rnd *rand.Rand, i int) {
	c := &s.channels[i]

	if rnd.IntN(4) == 0 {
		c.gather = gatherKind(1 + rnd.IntN(3))
	}

	for to := i + 1; to < len(s.channels); to++ {
		if to == i+1 || rnd.IntN(3) == 0 {
			c.routes = append(c.routes, routeSpec{to: to, half: !c.behind && c.gather == gatherNot && rnd.IntN(3) == 0})
		}
	}

	if len(c.routes) == 0 {
		c.gather = gatherNot
	}

	if c.gather == gatherNot && len(c.routes) > 0 {
		c.batch = pipeline.Batch{}
	}

	for _, r := range c.routes {
		s.channels[r.to].fed++
		s.channels[r.to].behind = s.channels[r.to].behind || c.behind || c.gather != gatherNot
	}
}

// drawOrders orders the first channel of an ordered job, and what may be ordered behind it.
func (s *spec) drawOrders(rnd *rand.Rand) {
	if !s.ordered {
		return
	}

	s.channels[0].order = pipeline.Order(1 + rnd.IntN(2))

	for i := range s.channels {
		for _, r := range s.channels[i].routes {
			if c := &s.channels[r.to]; c.fed == 1 && !c.behind && s.channels[i].order != pipeline.OrderNone && rnd.IntN(3) > 0 {
				c.order = s.channels[i].order
			}
		}
	}
}

func (s *spec) site(channel, stage int) string {
	if stage == endOf {
		return s.channels[channel].name + "/end"
	}

	return fmt.Sprintf("%s/s%d", s.channels[channel].name, stage)
}

// outs returns the paths of what a stage makes of a message.
func (w *world) outs(channel, stage int, path string) []string {
	h := w.hash("outs", channel, stage, path)

	switch w.spec.channels[channel].stages[stage] {
	case stageMark:
		return []string{fmt.Sprintf("%s/%d", path, channel)}
	case stageFilter:
		if h%4 == 0 {
			return nil
		}
	case stageFan:
		var outs []string
		for i := range h % 4 {
			outs = append(outs, fmt.Sprintf("%s.%d", path, i))
		}

		return outs
	case stageSame:
	}

	return []string{path}
}

// takes says whether a route takes a message.
func (w *world) takes(channel, route int, path string) bool {
	return !w.spec.channels[channel].routes[route].half || w.hash("route", channel, route, path)%2 == 0
}

// expect adds the ends that a message must reach from a channel on.
func (w *world) expect(channel int, path string, leaves map[leaf]bool) {
	c := &w.spec.channels[channel]
	paths := []string{path}

	for stage := range c.stages {
		var next []string
		for _, p := range paths {
			next = append(next, w.outs(channel, stage, p)...)
		}

		paths = next
	}

	for _, p := range paths {
		if len(c.routes) == 0 || c.gather == gatherNone {
			leaves[leaf{channel: channel, path: p}] = true

			continue
		}

		for i, r := range c.routes {
			if w.takes(channel, i, p) {
				w.expect(r.to, p, leaves)
			}
		}
	}
}
