package actors

import (
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

const harnessGroup = "job"

// proc is a process of a run: one member of the group, from its start to its end.
type proc struct {
	w    *world
	name string
	r    *Running
	// crashed: the process was killed; what it still does has no effect and is not looked at.
	crashed bool

	// What follows is guarded by the world's mu. owned are the queues that the job says it owns, revoked the leases that it
	// has given up, known the commit watermarks that it must not fall behind, followed the queues where it said it would.
	owned    map[pipeline.Queue]uint64
	revoked  map[consumer.Lease]bool
	known    map[pipeline.Queue]pipeline.Offset
	followed map[pipeline.Queue]bool
	// answered is the broker's last answer for a queue's checkpoint, starts what each ownership began with.
	answered map[pipeline.Queue]consumer.Checkpoint
	starts   map[consumer.Lease]consumer.Checkpoint
	// left is how many unfinished messages the job has given up.
	left int
	// ends counts queues that were to end; paused are the queues that must not be pulled, sought those that are to go on at
	// another offset, seeking the ownerships that have ended for that.
	ends    int
	paused  map[pipeline.Queue]bool
	sought  map[pipeline.Queue]pipeline.Offset
	seeking map[consumer.Lease]pipeline.Offset
	// gates are what is known of the channels' breakers.
	gates []gate
}

// job makes the pipeline's job of the spec, as this process runs it.
func (p *proc) job() pipeline.Job {
	s := p.w.spec
	job := pipeline.Job{
		Name:   harnessGroup,
		Source: pipeline.Source{Topics: []string{"in"}, Start: s.start, Broadcast: s.broadcast},
		Retry:  s.retry,
	}

	for i := range s.channels {
		c := &s.channels[i]
		channel := pipeline.Channel{Name: c.name, Lanes: c.lanes, Order: c.order, Timeout: c.timeout, Batch: c.batch, Breaker: c.breaker}

		for index := range c.stages {
			channel.Stages = append(channel.Stages, pipeline.Stage{
				Name: fmt.Sprintf("s%d", index),
				New:  func() (pipeline.Transform, error) { return &stage{p: p, channel: i, index: index}, nil },
			})
		}

		if c.gather != gatherNot {
			channel.Gather = &pipeline.GatherStage{
				New: func() (pipeline.BatchTransform, error) { return &gather{p: p, channel: i}, nil },
			}
		}

		for at, r := range c.routes {
			route := pipeline.Route{To: s.channels[r.to].name}
			if r.half {
				route.When = func(m *pipeline.Message) bool { return p.w.takes(i, at, pathOf(m)) }
			}

			channel.Routes = append(channel.Routes, route)
		}

		if len(c.routes) == 0 {
			channel.Sink = &sink{p: p, channel: i}
		}

		job.Channels = append(job.Channels, channel)
	}

	return job
}

// start starts a process under a name. It is Start, with the subscription made before the first event.
func (w *world) start(name string) *proc {
	p := &proc{
		w: w, name: name,
		owned:    make(map[pipeline.Queue]uint64),
		revoked:  make(map[consumer.Lease]bool),
		known:    make(map[pipeline.Queue]pipeline.Offset),
		followed: make(map[pipeline.Queue]bool),
		answered: make(map[pipeline.Queue]consumer.Checkpoint),
		starts:   make(map[consumer.Lease]consumer.Checkpoint),
		paused:   make(map[pipeline.Queue]bool),
		sought:   make(map[pipeline.Queue]pipeline.Offset),
		seeking:  make(map[consumer.Lease]pipeline.Offset),
		gates:    newGates(len(w.spec.channels)),
	}
	p.r = &Running{done: make(chan struct{})}

	w.mu.Lock()
	w.notef("%s starts", name)
	w.living[name] = p

	if _, known := w.joined[w.memberOf(name)]; !known {
		w.joined[w.memberOf(name)] = time.Since(w.began)
	}
	w.mu.Unlock()

	opts := w.spec.opts
	opts.Instance = name
	opts.Logger = zap.New(zapcore.NewCore(zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "what"}), traceWriter{w}, zap.ErrorLevel))

	plan, opts, err := compile(p.job(), opts)
	if err != nil {
		w.t.Fatal(err)
	}

	p.r.plan = plan
	top := propsOf(plan, p.watch().Broker(w.b), opts, p.r.stopped)

	p.r.system = actor.NewActorSystem(actor.WithLoggerFactory(silent))
	p.r.OnEvent(p.on)

	if p.r.pid, err = p.r.system.Root.SpawnNamed(top, harnessGroup); err != nil {
		w.t.Fatal(err)
	}

	return p
}

// traceWriter puts errors that a job logs into the trace.
type traceWriter struct{ w *world }

func (t traceWriter) Write(line []byte) (int, error) {
	t.w.mu.Lock()
	defer t.w.mu.Unlock()

	t.w.notef("log: %s", line)

	return len(line), nil
}

func (t traceWriter) Sync() error { return nil }

// on checks what the job says of itself. It runs on the goroutine of the actor that publishes.
func (p *proc) on(e Event) {
	var standings map[pipeline.Queue][]consumer.Run
	if r, ok := e.(*QueueRevoked); ok {
		standings = map[pipeline.Queue][]consumer.Run{r.Queue: p.w.returnedRuns(r.Queue)}
	}

	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()

	if p.crashed {
		return
	}

	switch e := e.(type) {
	case *QueueAssigned:
		p.onAssigned(e)
	case *QueueRevoked:
		p.onRevoked(e, standings[e.Queue])
	case *OffsetRewound:
		p.followed[e.Queue] = p.followed[e.Queue] || e.Followed
	case *LaneHung:
		w.onHung(p, e)
	case *BreakerOpened:
		p.onOpened(e)
	case *BreakerClosed:
		p.onClosed(e)
	case *MessageDead:
		w.notef("%s: dead %s %d %s: %v", p.name, e.Queue, e.Offset, e.MessageID, e.Err)
	case *MessageDropped:
		w.onDropped(p, e)
	case *MessageReturned:
		w.notef("%s: returned %s %d %s: %v", p.name, e.Queue, e.Offset, e.MessageID, e.Err)
	case *JobStopped:
		w.notef("%s: stopped: %+v", p.name, *e.Report)
	case *CommitFailed:
		w.notef("%s: commit failed: %s %v", p.name, e.Queue, e.Err)
	case *QueueWaits:
		w.notef("%s: waits: %s %v, %s", p.name, e.Queue, e.Err, e.Retry)
	case *ReturnRefused:
		w.notef("%s: refused: %s %d %v, %s", p.name, e.Queue, e.Offset, e.Err, e.Retry)
	}
}

func (p *proc) onAssigned(e *QueueAssigned) {
	w := p.w
	w.stats.assigned++
	w.notef("%s: assigned %s epoch %d from %d, done %d", p.name, e.Queue, e.Epoch, e.From, e.Done)

	if epoch, ok := p.owned[e.Queue]; ok {
		w.breachf("double ownership", "%s has %s in epoch %d and now in %d", p.name, e.Queue, epoch, e.Epoch)
	}

	lease := consumer.Lease{Queue: e.Queue, Epoch: e.Epoch}
	_, sought := p.seeking[lease]

	if sought {
		delete(p.seeking, lease)
		delete(p.revoked, lease)
		w.resought(lease, e.From)
	} else {
		delete(p.paused, e.Queue) // a pause does not outlive an ownership
	}

	if e.From < p.known[e.Queue] && !p.followed[e.Queue] && !sought {
		w.breachf("I3", "%s goes back in %s from %d to %d", p.name, e.Queue, p.known[e.Queue], e.From)
	}

	p.owned[e.Queue] = e.Epoch
	p.known[e.Queue], p.followed[e.Queue] = e.From, false
	p.starts[lease] = p.answered[e.Queue]
}

// onDropped is the end of a failed message of a broadcasting job. The caller holds mu.
func (w *world) onDropped(p *proc, e *MessageDropped) {
	w.notef("%s: dropped %s %d %s: %v", p.name, e.Queue, e.Offset, e.MessageID, e.Err)

	a := attempt{place: w.placeOf(p.name, e.Queue, e.Offset), epoch: p.owned[e.Queue]}

	if !w.spec.broadcast {
		w.breachf("I1", "%s drops %s and is no broadcast", p.name, e.MessageID)
	}

	w.checkFailed(fmt.Sprintf("the drop by %s", p.name), e.MessageID, a)

	w.done[a.place], w.returned[a] = true, true
	w.shut(a)
}

func (p *proc) onRevoked(e *QueueRevoked, returned []consumer.Run) {
	w := p.w
	lease := consumer.Lease{Queue: e.Queue, Epoch: e.Epoch}
	w.notef("%s: revoked %s epoch %d at %d, unfinished %d: %v", p.name, e.Queue, e.Epoch, e.Committed, e.Unfinished, e.Err)

	delete(p.owned, e.Queue)
	p.revoked[lease] = true
	p.known[e.Queue] = e.Committed
	p.left += e.Unfinished
	p.ends++

	if to, ok := p.sought[e.Queue]; ok {
		p.seeking[lease] = to
	}

	if e.Err != nil || e.Unfinished > 0 {
		return
	}

	last, ok := w.commits[lease]
	if !ok {
		last = p.starts[lease]
	}

	for o := range w.complete[lease] {
		if !last.Finished(o) && !consumer.ContainsRun(returned, o) {
			w.breachf("I6", "%s gave up %s cleanly, but %d is complete and not in %v", p.name, e.Queue, o, last)
		}
	}
}

// onHung marks the calls that a hung lane was at. The caller holds mu.
func (w *world) onHung(p *proc, e *LaneHung) {
	w.notef("%s: hung %s/%s %s %d", p.name, e.Channel, e.Stage, e.Queue, e.Offset)

	found := false

	for _, calls := range w.calls {
		for _, c := range calls {
			if c.p != p || w.spec.channels[c.channel].name != e.Channel || !slices.ContainsFunc(c.blame, func(r ref) bool {
				return r.queue == e.Queue && r.offset == e.Offset
			}) {
				continue
			}

			found = true

			for _, r := range c.blame {
				w.failed[r.attempt]++
			}

			// Other parts of the message may be at the sink in other lanes.
			c.hung = c.hung || c.stage != endOf || time.Since(c.since) >= w.spec.channels[c.channel].timeout
		}
	}

	if !found {
		w.breachf("hung", "%s: nothing of %s %d runs in %s", p.name, e.Queue, e.Offset, e.Channel)
	}
}

// returnedRuns are the offsets of a queue that the group handed back to the broker.
func (w *world) returnedRuns(q pipeline.Queue) []consumer.Run {
	for _, s := range w.b.Standings(harnessGroup, q.Topic) {
		if s.Queue == q {
			return s.Returned
		}
	}

	return nil
}
