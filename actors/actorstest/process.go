package actorstest

import (
	"slices"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// process is one member of the job's group, from its start to its end.
type process struct {
	course *course
	name   string
	job    *actors.Running
	// subscribed is closed when the events of the job are seen; it joins its group no sooner.
	subscribed chan struct{}

	// What follows is guarded by the course's mu. crashed: the process was killed, and what it still does has no effect.
	crashed bool
	// owned are the queues that the job says it owns, revoked the leases that it has given up, known the commit watermarks
	// that it must not fall behind, followed the queues where it said it would.
	owned    map[pipeline.Queue]uint64
	revoked  map[consumer.Lease]bool
	known    map[pipeline.Queue]pipeline.Offset
	followed map[pipeline.Queue]bool
	// answered is the broker's last answer for a queue's checkpoint, starts what each ownership began with.
	answered map[pipeline.Queue]consumer.Checkpoint
	starts   map[consumer.Lease]consumer.Checkpoint
	// moved are the leases under which somebody has sought, sought the queues that were to begin elsewhere before they had begun.
	moved  map[consumer.Lease]bool
	sought map[pipeline.Queue]pipeline.Offset
	// left is how many unfinished messages the job has given up.
	left int
}

// start starts a process of the job under a name.
func (c *course) start(name string) *process {
	c.t.Helper()

	p := &process{
		course: c, name: name, subscribed: make(chan struct{}),
		owned:    make(map[pipeline.Queue]uint64),
		revoked:  make(map[consumer.Lease]bool),
		known:    make(map[pipeline.Queue]pipeline.Offset),
		followed: make(map[pipeline.Queue]bool),
		answered: make(map[pipeline.Queue]consumer.Checkpoint),
		starts:   make(map[consumer.Lease]consumer.Checkpoint),
		moved:    make(map[consumer.Lease]bool),
		sought:   make(map[pipeline.Queue]pipeline.Offset),
	}

	job, err := c.build(plugins.Env{Publisher: c.b})
	if err != nil {
		c.t.Fatalf("actorstest: make the job: %v", err)
	}

	opts := c.opts
	opts.Instance = name

	broker := p.watch().Broker(c.b)
	if c.spoil != nil {
		broker = c.spoil.Broker(broker)
	}

	c.locked(func() { c.notef(place{}, "", "%s starts", name) })

	if p.job, err = actors.Start(p.wrap(job), broker, opts); err != nil {
		c.t.Fatal(err)
	}

	p.job.OnEvent(p.on)
	close(p.subscribed)

	return p
}

// wrap returns the job with everything of the user's wrapped.
func (p *process) wrap(job pipeline.Job) pipeline.Job {
	job.Source.Start = pipeline.First
	job.Channels = slices.Clone(job.Channels)

	for i := range job.Channels {
		ch := &job.Channels[i]
		ch.Stages = stagesOf(ch)

		for n, s := range ch.Stages {
			if s.New == nil {
				continue // a mistake, which the job will be told of
			}

			ch.Stages[n].New = func() (pipeline.Transform, error) {
				inner, err := s.New()
				if err != nil {
					return nil, err
				}

				return &stage{life: life{inner}, p: p, channel: i, index: n, inner: inner}, nil
			}
		}

		if g := ch.Gather; g != nil && g.New != nil {
			ch.Gather = &pipeline.GatherStage{Name: g.Name, New: func() (pipeline.BatchTransform, error) {
				inner, err := g.New()
				if err != nil {
					return nil, err
				}

				return &gather{life: life{inner}, p: p, channel: i, inner: inner}, nil
			}}
		}

		if ch.Sink != nil {
			ch.Sink = &sink{life: life{ch.Sink}, p: p, channel: i, inner: ch.Sink}
		}

		ch.Routes = p.routes(ch.Routes)
	}

	return job
}

// stagesOf returns the stages of a channel, one that does nothing where it has none: its messages are to be seen.
func stagesOf(ch *pipeline.Channel) []pipeline.Stage {
	if len(ch.Stages) > 0 {
		return slices.Clone(ch.Stages)
	}

	return []pipeline.Stage{pipeline.Filter("seen", func(*pipeline.Message) bool { return true })}
}

// routes returns routes that count what they take.
func (p *process) routes(routes []pipeline.Route) []pipeline.Route {
	routes = slices.Clone(routes)

	for i, r := range routes {
		target, _ := p.course.plan.Index(r.To)

		routes[i] = pipeline.Route{To: r.To, Condition: func(m *pipeline.Message) (bool, error) {
			h, ok := m.Memo().(*handle)
			if !ok {
				return r.Matches(m)
			}

			m.SetMemo(h.inner)

			matches, err := r.Matches(m)
			if matches && err == nil {
				h.routed[target]++
			}

			h.inner = m.Memo()
			m.SetMemo(h)

			return matches, err
		}}
	}

	return routes
}

// on checks what the job says of itself. It runs on the goroutine of the actor that publishes.
func (p *process) on(e actors.Event) {
	var back []consumer.Run
	if r, ok := e.(*actors.QueueRevoked); ok {
		back = p.course.returned(r.Queue)
	}

	c := p.course
	c.mu.Lock()
	defer c.mu.Unlock()

	if p.crashed || c.deaf != nil && c.deaf(e) {
		return
	}

	switch e := e.(type) {
	case *actors.QueueAssigned:
		p.onAssigned(e)
	case *actors.QueueRevoked:
		p.onRevoked(e, back)
	case *actors.OffsetRewound:
		p.followed[e.Queue] = p.followed[e.Queue] || e.Followed
		c.notef(place{e.Queue, anyOffset}, "", "%s is told that %s is at %d, and not at %d", p.name, e.Queue, e.To, e.From)
	case *actors.LaneHung:
		p.onHung(e)
	case *actors.MessageDropped:
		p.onDropped(e)
	case *actors.MessageDead:
		c.notef(place{e.Queue, e.Offset}, e.MessageID, "%s has parked it in the dead letters: %v", p.name, e.Err)
	case *actors.MessageReturned:
		c.notef(place{e.Queue, e.Offset}, e.MessageID, "%s has sent it back, for %s: %v", p.name, e.Delay, e.Err)
	case *actors.JobStopped:
		c.notef(place{}, "", "%s has stopped, with %d unfinished, error %v", p.name, e.Report.UnfinishedCount, e.Report.Err)
	case *actors.CommitFailed:
		c.notef(place{e.Queue, anyOffset}, "", "%s could not commit %s: %v", p.name, e.Queue, e.Err)
	case *actors.ReturnRefused:
		c.notef(place{e.Queue, e.Offset}, "", "%s could not return it: %v", p.name, e.Err)
	}
}

func (p *process) onAssigned(e *actors.QueueAssigned) {
	c := p.course
	lease := consumer.Lease{Queue: e.Queue, Epoch: e.Epoch}
	c.notef(place{e.Queue, anyOffset}, "", "%s has %s in epoch %d from %d on", p.name, e.Queue, e.Epoch, e.From)

	if epoch, ok := p.owned[e.Queue]; ok {
		c.breakf("one owner", place{e.Queue, anyOffset}, "", "%s has it in epoch %d and now in %d", p.name, epoch, e.Epoch)
	}

	if p.revoked[lease] { // it was sought
		delete(p.revoked, lease)
		c.book.forget(lease, e.From)
		c.forgetOrder(lease)
	}

	if to, ok := p.sought[e.Queue]; ok && to == e.From {
		p.moved[lease] = true
	}

	delete(p.sought, e.Queue)

	if e.From < p.known[e.Queue] && !p.followed[e.Queue] && !p.moved[lease] {
		c.breakf("I3", place{e.Queue, anyOffset}, "",
			"%s goes back from %d to %d, and nobody has asked it to", p.name, p.known[e.Queue], e.From)
	}

	p.owned[e.Queue] = e.Epoch
	p.known[e.Queue], p.followed[e.Queue] = e.From, false
	p.starts[lease] = p.answered[e.Queue]
}

func (p *process) onRevoked(e *actors.QueueRevoked, back []consumer.Run) {
	c := p.course
	lease := consumer.Lease{Queue: e.Queue, Epoch: e.Epoch}
	c.notef(place{e.Queue, anyOffset}, "", "%s has given up %s in epoch %d at %d, with %d unfinished, error %v",
		p.name, e.Queue, e.Epoch, e.Committed, e.Unfinished, e.Err)

	delete(p.owned, e.Queue)
	p.revoked[lease] = true
	p.known[e.Queue] = e.Committed
	p.left += e.Unfinished

	if e.Err != nil || e.Unfinished > 0 || p.moved[lease] {
		return
	}

	last, ok := c.commits[lease]
	if !ok {
		last = p.starts[lease]
	}

	for o, a := range c.book.attempts[lease] {
		if a.whole.size() == 0 && !a.vague && !last.Finished(o) && !consumer.ContainsRun(back, o) {
			c.breakf("I6", a.place, a.id, "it is finished, and %s has given the queue up in order with %v", p.name, last)
		}
	}
}

// onHung marks the calls that a hung lane was at.
func (p *process) onHung(e *actors.LaneHung) {
	c := p.course
	at := place{e.Queue, e.Offset}
	c.notef(at, e.MessageID, "%s has given up a call in %s/%s that does not return", p.name, e.Channel, e.Stage)

	for _, k := range c.calls[at] {
		if k.p != p || c.plan.Job.Channels[k.channel].Name != e.Channel {
			continue
		}

		k.hung = true

		for _, a := range k.attempts() {
			a.failed, a.vague = true, true
			c.failures[a.id]++
		}
	}
}

func (p *process) onDropped(e *actors.MessageDropped) {
	c := p.course
	at := place{e.Queue, e.Offset}
	c.notef(at, e.MessageID, "%s has dropped it: %v", p.name, e.Err)

	if !c.plan.Job.Source.Broadcast {
		c.breakf("I1", at, e.MessageID, "%s drops it, though the job is no broadcast", p.name)
	}

	c.book.finished[at] = true
	c.dropped[e.MessageID] = true
}

// forgetOrder forgets what has run under a lease, which is to run again. The caller holds mu.
func (c *course) forgetOrder(l consumer.Lease) {
	for s := range c.started {
		if s.lease == l {
			delete(c.started, s)
		}
	}

	for s := range c.lastWrite {
		if s.lease == l {
			delete(c.lastWrite, s)
		}
	}
}

// returned are the offsets of a queue that the group has handed back to the broker.
func (c *course) returned(q pipeline.Queue) []consumer.Run {
	for _, s := range c.b.Standings(c.group(), q.Topic) {
		if s.Queue == q {
			return s.Returned
		}
	}

	return nil
}

// stop drains the process; it returns nil when that takes too long.
func (p *process) stop(budget time.Duration) *actors.Report {
	stopped := make(chan *actors.Report, 1)
	go func() { stopped <- p.job.Drain(budget) }()

	const patience = 15 * time.Minute

	select {
	case report := <-stopped:
		return report
	case <-time.After(patience):
		return nil
	}
}
