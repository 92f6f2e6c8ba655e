package actorstest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// course is one seeded run: trouble, then peace, then a clean stop and a start that finds nothing to do.
type course struct {
	// Unrest draws the steps, for the goroutine that plays.
	*consumertest.Unrest

	t     *testing.T
	seed  uint64
	began time.Time
	build Build
	spec  Plan
	opts  actors.Options
	// limits are what the job is held to. spoil and deaf are for tests: spoil stands between the job and the broker, as a
	// mistake of the runtime would, and deaf says which events the job does not tell.
	limits consumer.Limits
	spoil  *consumertest.Around
	deaf   func(actors.Event) bool
	// plan is the job as it runs.
	plan *pipeline.Plan
	b    *consumertest.Broker

	// What follows belongs to the goroutine that plays. procs are the living processes by name.
	procs         map[string]*process
	sent          int
	starts, kills int
	killed        sync.WaitGroup
	lasted        time.Duration
	fates         map[string]consumertest.Fate

	// What follows is guarded by mu, and of book as it says.
	mu   sync.Mutex
	book book
	// calls are the running calls, by the records that they work on, passing the messages that are being emitted.
	calls   map[place][]*call
	passing map[*pipeline.Message]*passing
	// started is the highest offset that has begun, lastWrite the number of the last accepted write of each offset.
	started   map[slot]pipeline.Offset
	lastWrite map[slot]map[pipeline.Offset]int
	turns     int
	// failures count the failures of each message, draws the draws at each place; rejected and dropped are ids.
	failures map[string]int
	draws    map[string]int
	rejected map[string]bool
	dropped  map[string]bool
	// commits are the last checkpoints, by lease, stored all that were stored for a queue.
	commits   map[consumer.Lease]consumer.Checkpoint
	stored    map[pipeline.Queue][]consumer.Checkpoint
	living    map[string]*process
	published []string
	trace     []line
	breaches  []breach
	// trouble: stages and sinks misbehave. stopped: everything was finished, and all processes have stopped in order.
	trouble, stopped bool
}

// slot is what an ordered channel keeps in order, under one ownership.
type slot struct {
	channel int
	key     string
	lease   consumer.Lease
}

func newCourse(t *testing.T, build Build, spec Plan, seed uint64, spoil *consumertest.Around) *course {
	t.Helper()

	c := &course{
		t: t, seed: seed, began: time.Now(), build: build, spec: spec, spoil: spoil,
		Unrest: &consumertest.Unrest{Rnd: rand.New(rand.NewPCG(seed, 1))}, procs: make(map[string]*process), book: newBook(),
		calls:     make(map[place][]*call),
		passing:   make(map[*pipeline.Message]*passing),
		started:   make(map[slot]pipeline.Offset),
		lastWrite: make(map[slot]map[pipeline.Offset]int),
		failures:  make(map[string]int),
		draws:     make(map[string]int),
		rejected:  make(map[string]bool),
		dropped:   make(map[string]bool),
		commits:   make(map[consumer.Lease]consumer.Checkpoint),
		stored:    make(map[pipeline.Queue][]consumer.Checkpoint),
		living:    make(map[string]*process),
	}
	c.b = consumertest.NewBroker(consumertest.Config{
		Seed: seed, RetryQueues: 1 + c.Rnd.IntN(2), Hold: c.UpTo(15 * time.Second), Patience: c.UpTo(15 * time.Second),
		OnCommit: c.onCommit,
	})

	job, err := build(plugins.Env{Publisher: c.b})
	if err != nil {
		t.Fatalf("actorstest: make the job: %v", err)
	}

	for i := range job.Channels {
		job.Channels[i].Stages = stagesOf(&job.Channels[i])
	}

	if c.plan, err = pipeline.Compile(job); err != nil {
		t.Fatalf("actorstest: %v", err)
	}

	c.Broker, c.Group, c.Topics, c.Tell = c.b, c.group(), c.topics(), c.tell

	if c.member() == "" {
		c.Topics = append([]string{consumer.RetryTopic(c.group())}, c.topics()...)
	}

	for _, topic := range append(c.topics(), spec.Topics...) {
		c.b.CreateTopic(topic, 1+c.Rnd.IntN(4))
	}

	c.drawOptions()

	return c
}

// drawOptions draws what the plan leaves open.
func (c *course) drawOptions() {
	c.opts = c.spec.Options

	for _, d := range []struct {
		option *time.Duration
		most   time.Duration
	}{
		{&c.opts.CommitEvery, 8 * time.Second}, {&c.opts.RevokeBudget, 6 * time.Second}, {&c.opts.DrainBudget, 30 * time.Second},
	} {
		if drawn := c.UpTo(d.most); *d.option == 0 {
			*d.option = drawn
		}
	}

	drawn := consumer.Limits{
		Messages: 1 + c.Rnd.IntN(40), Bytes: int64(20 + c.Rnd.IntN(2000)), Span: int64(1 + c.Rnd.IntN(200)),
	}

	if c.Rnd.IntN(4) > 0 && c.opts.Limits == (consumer.Limits{}) {
		c.opts.Limits = drawn
	}

	c.limits = c.opts.Limits
}

func (c *course) topics() []string { return c.plan.Job.Source.Topics }

func (c *course) group() string { return c.plan.Job.Source.Group }

// member is under whose name offsets are stored; empty means the group's.
func (c *course) member() string {
	if c.plan.Job.Source.Broadcast {
		return c.names()[0]
	}

	return ""
}

// names are the processes that there can be at a time.
func (c *course) names() []string {
	n := c.spec.Processes
	if c.plan.Job.Source.Broadcast {
		n = 1 // offsets are a member's own
	}

	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("process-%d", i)
	}

	return names
}

func (c *course) someName() string { return c.names()[c.Rnd.IntN(len(c.names()))] }

// locked calls f while it holds the lock.
func (c *course) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()

	f()
}

func (c *course) play() {
	c.publish(1 + c.Rnd.IntN(c.spec.Messages))
	c.begin(c.names()[0])

	if quiet := c.Rnd.IntN(8) == 0; !quiet {
		c.locked(func() { c.trouble = true })

		for range 5 + c.Rnd.IntN(20) {
			c.step()
			c.Pass()
			c.look()
		}
	}

	c.heal()
	c.settle()
	c.stopAll()
	c.restart()
	c.killed.Wait()
	// protoactor keeps count of undeliverable messages for a second.
	<-time.After(2 * time.Second)
	c.b.Close()
	<-time.After(2 * time.Second)
}

// publish publishes the next messages, one or more of what is left.
func (c *course) publish(n int) {
	for range min(n, c.spec.Messages-c.sent) {
		m := c.spec.Message(c.sent).Clone()
		if m.ID == "" {
			m.ID = fmt.Sprintf("m%d", c.sent)
		}

		topic := c.topics()[0]

		for _, other := range c.topics() {
			if m.Topic == other {
				topic = other
			}
		}

		c.sent++
		c.locked(func() {
			c.published = append(c.published, m.ID)
			c.notef(place{}, m.ID, "it is published to %s", topic)
		})

		if err := c.b.Publish(c.t.Context(), topic, []*pipeline.Message{m}); err != nil {
			c.t.Fatalf("actorstest: publish: %v", err)
		}
	}
}

// step makes one thing happen.
func (c *course) step() {
	switch c.Rnd.IntN(13) {
	case 0, 1:
		c.publish(1 + c.Rnd.IntN(1+c.spec.Messages/4))
	case 2, 3:
		c.b.SetFaults(consumertest.DrawFaults(c.Rnd))
	case 4, 5:
		c.Reassign(c.Rnd.IntN(2) == 0)
	case 6, 7:
		c.begin(c.someName())
	case 8:
		c.stop(c.someName(), c.UpTo(10*time.Second)-time.Second)
	case 9, 10:
		c.kill(c.someName())
	case 11:
		c.seek()
	case 12:
		c.rollBack()
	}
}

// look takes a snapshot of every process in a moment of rest, checks it, and returns how much is in flight.
func (c *course) look() int {
	synctest.Wait()

	inFlight := 0

	for _, p := range c.procs {
		s, err := p.job.Snapshot(c.t.Context())
		if err != nil {
			continue // it has stopped
		}

		c.locked(func() { inFlight += c.check(p, s) })
	}

	return inFlight
}
