package actors

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// world is one seeded run: a random job under a random plan of faults, and everything that stages, sinks and the broker
// have seen of it. Its rules are checked while it happens; see docs/guarantees.md for their numbers.
type world struct {
	t     *testing.T
	seed  uint64
	began time.Time
	// lasts is how long the trouble lasts at least; 0 means a few steps.
	lasts time.Duration
	// rnd belongs to the goroutine that plays the plan.
	rnd  *rand.Rand
	spec *spec
	b    *consumertest.Broker
	// faulty: stages and sinks misbehave.
	faulty atomic.Bool
	// release is closed at the end, so that hung calls return.
	release chan struct{}

	mu sync.Mutex
	// expected are the leaves that each published message must reach.
	expected map[string]map[leaf]bool
	// got are the leaves that each attempt has reached.
	got map[attempt]map[leaf]bool
	// complete are the offsets of an ownership of which an attempt has reached every leaf.
	complete map[consumer.Lease]map[pipeline.Offset]bool
	done     map[place]bool
	// failed counts the failures that are attempts; held are the attempts with one that is none, as an open breaker holds it.
	failed map[attempt]int
	held   map[attempt]bool
	// outage is the dependency that is down.
	outage   outage
	rejected map[string]bool
	// returned are the attempts that the broker has confirmed to have taken back.
	returned map[attempt]bool
	gathered map[string]bundle
	draws    map[string]int
	// calls are the running calls, by the ids of the messages in them.
	calls map[string][]*call
	// started is the highest offset that has started, lastWrite the number of the last accepted write of each offset.
	started   map[orderSlot]pipeline.Offset
	lastWrite map[orderSlot]map[pipeline.Offset]int
	writes    int
	// open are the offsets of an ownership that have started and are not done.
	open map[consumer.Lease]map[pipeline.Offset]struct{}
	// resoughts counts the seeks under a lease.
	resoughts map[consumer.Lease]int
	// born says how long after the begin a message was published, joined when the first process of the group or of the member
	// started, startAt where a queue begins for a reader if not at its first offset, skipped what was left out by seeks.
	born    map[string]time.Duration
	joined  map[string]time.Duration
	startAt map[reader]pipeline.Offset
	skipped map[reader][]consumer.Run
	// living are the processes by name, for what is seen from the broker's side.
	living map[string]*proc
	// commits are the last checkpoints, by lease.
	commits map[consumer.Lease]consumer.Checkpoint
	broken  []string
	trace   []string
	stats   stats
	// unclean: a process did not stop clean in the end; finalRun: none had anything left to do.
	unclean, finalRun bool
}

// stats say what a run has been through, to show that runs are not idle.
type stats struct {
	published, starts, accepted, failures, hangs, repeats, commits, assigned, snapshots, outages, openings int
}

// reader is who has to get all of a queue: the group, or a member of it when all of them do.
type reader struct {
	member string
	queue  pipeline.Queue
}

// place is where a record stands for its reader, attempt one run of it under one ownership.
type place struct {
	reader

	offset pipeline.Offset
}

type attempt struct {
	place

	epoch uint64
}

func (a attempt) lease() consumer.Lease { return consumer.Lease{Queue: a.queue, Epoch: a.epoch} }

// ref is a part of a source message: which attempt, and the path that it took through the job.
type ref struct {
	attempt

	id, path string
}

// bundle is what a gathered message stands for: credit are the parts that are finished with it, blame the ones that fail.
type bundle struct{ credit, blame []ref }

// leaf is an end of the job that a part of a message must reach.
type leaf struct {
	channel int
	path    string
}

// orderSlot is what an ordered channel keeps in order, at one of its stages, under one ownership.
type orderSlot struct {
	channel, stage int
	member, key    string
	lease          consumer.Lease
}

// call is a running call of a stage or a sink.
type call struct {
	p       *proc
	channel int
	stage   int
	refs    []ref
	blame   []ref
	// ctx is the same for all calls that a lane makes inside one.
	ctx   context.Context // compared, not used
	since time.Time
	// hung: the job has announced that it gave the call up.
	hung bool
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()

	w := &world{
		t: t, seed: seed, began: time.Now(), rnd: rand.New(rand.NewPCG(seed, 1)), release: make(chan struct{}),
		expected:  make(map[string]map[leaf]bool),
		got:       make(map[attempt]map[leaf]bool),
		complete:  make(map[consumer.Lease]map[pipeline.Offset]bool),
		done:      make(map[place]bool),
		failed:    make(map[attempt]int),
		held:      make(map[attempt]bool),
		rejected:  make(map[string]bool),
		returned:  make(map[attempt]bool),
		gathered:  make(map[string]bundle),
		draws:     make(map[string]int),
		calls:     make(map[string][]*call),
		started:   make(map[orderSlot]pipeline.Offset),
		lastWrite: make(map[orderSlot]map[pipeline.Offset]int),
		commits:   make(map[consumer.Lease]consumer.Checkpoint),
		open:      make(map[consumer.Lease]map[pipeline.Offset]struct{}),
		resoughts: make(map[consumer.Lease]int),
		born:      make(map[string]time.Duration),
		joined:    make(map[string]time.Duration),
		startAt:   make(map[reader]pipeline.Offset),
		skipped:   make(map[reader][]consumer.Run),
		living:    make(map[string]*proc),
	}
	w.spec = newSpec(w.rnd, w.began)
	w.b = consumertest.NewBroker(consumertest.Config{
		Seed: seed, RetryQueues: 1 + w.rnd.IntN(2), Hold: time.Duration(1+w.rnd.IntN(15)) * time.Second,
		Patience: time.Duration(1+w.rnd.IntN(15)) * time.Second, OnCommit: w.onCommit,
	})
	w.b.CreateTopic("in", w.spec.queues)

	return w
}

// breach notes that a rule was broken. The caller holds mu.
func (w *world) breachf(rule, format string, args ...any) {
	const most = 8

	w.notef("BROKEN %s: "+format, append([]any{rule}, args...)...)

	if len(w.broken) < most {
		w.broken = append(w.broken, fmt.Sprintf("%s: %s", rule, fmt.Sprintf(format, args...)))
	}
}

// note writes a line of the trace. The caller holds mu.
func (w *world) notef(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%10s  ", time.Since(w.began))+fmt.Sprintf(format, args...))
}

// hash mixes the seed with names: what it returns is the same in each run of the seed, whatever the order of events.
func (w *world) hash(parts ...any) uint64 {
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, append([]any{w.seed, "|"}, parts...)...)

	const mix = 0x9e3779b97f4a7c15

	x := h.Sum64() * mix

	return x ^ x>>29
}

// refs returns what a message stands for.
func (w *world) refs(p *proc, m *pipeline.Message) bundle {
	path := pathOf(m)

	w.mu.Lock()
	g, ok := w.gathered[m.ID]
	w.mu.Unlock()

	if !ok {
		r := []ref{{
			attempt: w.attemptOf(p, m), id: m.ID, path: path,
		}}

		return bundle{credit: r, blame: r}
	}

	suffix := path[len(m.ID):]
	credit := make([]ref, len(g.credit))

	for i, r := range g.credit {
		r.path += suffix
		credit[i] = r
	}

	return bundle{credit: credit, blame: g.blame}
}

// begin notes that a call starts, and checks that it may.
func (w *world) begin(ctx context.Context, p *proc, channel, stage int, key string, b bundle) *call {
	w.mu.Lock()
	defer w.mu.Unlock()

	of := b.credit
	c := &call{p: p, channel: channel, stage: stage, refs: of, blame: b.blame, ctx: ctx, since: time.Now()}
	c.hung = w.givenUp(c)
	w.stats.starts++

	for _, r := range of {
		for _, other := range w.calls[r.id] {
			if !c.hung {
				w.checkAlone(c, other, r)
			}
		}

		if w.finalRun && p.r.Report() == nil {
			w.breachf("I6", "%v runs again in %s after a clean stop", r, w.where(c))
		}

		if from, ok := p.starts[r.lease()]; ok && from.Finished(r.offset) && !c.hung {
			w.breachf("I6", "%s at %s %d runs again, though the checkpoint %v says that it is finished", r.id, r.queue, r.offset, from)
		}

		if !c.hung && !p.crashed && !p.revoked[r.lease()] {
			w.checkSpan(r)
			w.checkStart(r)
		}
	}

	if w.spec.channels[channel].order != pipeline.OrderNone && stage < endOf && !c.hung {
		w.checkOrder(orderSlot{
			channel: channel, stage: stage, member: of[0].member, key: w.orderKey(channel, key), lease: of[0].lease(),
		}, of[0])
	}

	for _, r := range of {
		w.calls[r.id] = append(w.calls[r.id], c)
	}

	return c
}

// givenUp says whether a call goes on with what a lane was given up for: nothing counts what becomes of that.
func (w *world) givenUp(c *call) bool {
	return slices.ContainsFunc(w.calls[c.refs[0].id], func(other *call) bool {
		return other.hung && other.ctx == c.ctx
	})
}

// checkAlone is I11: no message runs twice at a time in one process.
func (w *world) checkAlone(c, other *call, r ref) {
	if other.p != c.p || other.hung {
		return
	}

	for _, o := range other.refs {
		if o.place != r.place {
			continue
		}

		if o.attempt != r.attempt || o.path == r.path && c.channel == other.channel && c.stage == other.stage {
			w.breachf("I11", "%s runs twice at a time: %v in %s since %s, and now %v in %s", r.id, o, w.where(other),
				other.since.Sub(w.began), r, w.where(c))
		}
	}
}

func (w *world) where(c *call) string {
	return fmt.Sprintf("%s of %s", w.spec.site(c.channel, c.stage), c.p.name)
}

// checkOrder is I7 for stages: inside one ownership the offsets of a key never go down.
func (w *world) checkOrder(s orderSlot, r ref) {
	if last, ok := w.started[s]; ok && r.offset < last {
		w.breachf("I7", "%s starts offset %d of key %q after %d", w.spec.site(s.channel, s.stage), r.offset, s.key, last)
	}

	w.started[s] = r.offset
}

func (w *world) orderKey(channel int, key string) string {
	if w.spec.channels[channel].order == pipeline.OrderByKey {
		return key
	}

	return ""
}

// end notes that a call has returned; it reports whether its result counts.
func (w *world) end(c *call) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.noteEnd(c)

	for _, r := range c.refs {
		list := w.calls[r.id]
		for i := range list {
			if list[i] == c {
				w.calls[r.id] = append(list[:i:i], list[i+1:]...)

				break
			}
		}
	}

	return !c.hung
}

// reach notes that parts of messages have reached an end of the job.
func (w *world) reach(channel int, of []ref) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, r := range of {
		w.stats.accepted++

		if w.got[r.attempt] == nil {
			w.got[r.attempt] = make(map[leaf]bool)
		}

		w.got[r.attempt][leaf{channel: channel, path: r.path}] = true
		w.settle(r)
	}
}

// pass notes that a message has gone through the first stage: one without any leaf is finished somewhere behind it.
func (w *world) pass(r ref) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if len(w.expected[r.id]) == 0 {
		w.done[r.place] = true
		w.shut(r.attempt)
	}
}

// settle notes that an attempt is complete, if it is. The caller holds mu.
func (w *world) settle(r ref) {
	for l := range w.expected[r.id] {
		if !w.got[r.attempt][l] {
			return
		}
	}

	if w.complete[r.lease()] == nil {
		w.complete[r.lease()] = make(map[pipeline.Offset]bool)
	}

	if w.done[r.place] && !w.complete[r.lease()][r.offset] {
		w.stats.repeats++
	}

	w.complete[r.lease()][r.offset] = true
	w.shut(r.attempt)
	w.done[r.place] = true
}
