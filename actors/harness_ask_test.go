package actors

import (
	"context"
	"maps"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// askPatience bounds a request of the plan: a seek waits for the end of what runs, and for the broker.
const askPatience = 5 * time.Minute

// ask pauses, resumes or seeks a queue of some process.
func (p *plan) ask() {
	proc := p.procs[names()[p.rnd.IntN(3)]]
	q := p.Queue()

	if proc == nil || proc.r.Report() != nil {
		return
	}

	switch p.rnd.IntN(4) {
	case 0:
		p.resume(proc, q)
	case 1:
		p.pause(proc, q)
	default:
		p.seek(proc, q)
	}
}

func (p *plan) pause(proc *proc, q pipeline.Queue) {
	if err := proc.r.Pause(p.t.Context(), q, "the plan"); err != nil {
		return // it is somebody else's
	}

	synctest.Wait() // its pull-queue actor has heard of it

	p.mu.Lock()
	defer p.mu.Unlock()

	p.notef("%s is to pause %s", proc.name, q)

	if _, ok := proc.owned[q]; ok {
		proc.paused[q] = true
	}
}

func (p *plan) resume(proc *proc, q pipeline.Queue) {
	p.mu.Lock()
	p.notef("%s is to resume %s", proc.name, q)
	delete(proc.paused, q)
	p.mu.Unlock()

	_ = proc.r.Resume(p.t.Context(), q) // it may be somebody else's
}

// seek moves a queue back, to an offset that the group has committed, so that what lies above is done again; or forward, which
// leaves out what is not done by then.
func (p *plan) seek(proc *proc, q pipeline.Queue) {
	of := p.placeOf(proc.name, q, 0).reader

	p.mu.Lock()
	least := p.startAt[of]
	_, pending := proc.sought[q]
	p.mu.Unlock()

	to, s, ok := p.Back(of.member, q, least)
	if pending || !ok {
		return
	}

	next := s.Checkpoint.Next
	if p.rnd.IntN(3) == 0 {
		to = next + pipeline.Offset(p.rnd.Int64N(max(0, int64(s.End-next))+1))
	}

	p.mu.Lock()
	p.skipped[of] = append(p.skipped[of], consumer.Run{From: next, To: max(to, next)})
	p.notef("%s is to seek %s to %d", proc.name, q, to)
	proc.sought[q] = to
	p.mu.Unlock()

	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.t.Context()), askPatience)
		defer cancel()

		err := proc.r.Seek(ctx, q, to)

		p.mu.Lock()
		defer p.mu.Unlock()

		p.notef("%s has sought %s: %v", proc.name, q, err)
		delete(proc.sought, q)

		if ctx.Err() != nil {
			p.breachf("seek", "%s has not answered a seek of %s after %s", proc.name, q, askPatience)
		}
	}()
}

// seeks says whether a commit is the one that a seek makes between two ownerships under one lease, or before the first. The
// caller holds mu.
func (p *proc) seeks(l consumer.Lease, c consumer.Checkpoint) bool {
	to, ok := p.seeking[l]

	if _, owned := p.owned[l.Queue]; !owned {
		if next, pending := p.sought[l.Queue]; pending { // a second seek comes before what the first one waits for
			to, ok = next, true
		}
	}

	return ok && c.Next == to && len(c.Done) == 0
}

// restarts says whether a commit is the one that begins a queue anew after a seek whose answer was lost, because the broker
// says by mistake that nothing is stored. It may call no more finished than was. The caller holds mu.
func (p *proc) restarts(l consumer.Lease, c consumer.Checkpoint) bool {
	_, sought := p.seeking[l]

	return sought && len(c.Done) == 0 && c.Next <= p.known[l.Queue]
}

// resought forgets what the former ownership under a lease has done from an offset on: it is to be done again. The caller
// holds the world's mu.
func (w *world) resought(l consumer.Lease, from pipeline.Offset) {
	for o := range w.complete[l] {
		if o >= from {
			delete(w.complete[l], o)
		}
	}

	again := func(a attempt) bool { return a.lease() == l && a.offset >= from }

	maps.DeleteFunc(w.returned, func(a attempt, _ bool) bool { return again(a) })
	maps.DeleteFunc(w.failed, func(a attempt, _ int) bool { return again(a) })

	for a := range w.got {
		if a.lease() == l && a.offset >= from {
			delete(w.got, a)
		}
	}

	for s := range w.started {
		if s.lease == l {
			delete(w.started, s)
		}
	}

	for s := range w.lastWrite {
		if s.lease == l {
			delete(w.lastWrite, s)
		}
	}

	delete(w.open, l)
	w.resoughts[l]++
}

// resumeAll ends every pause, for the peace.
func (p *plan) resumeAll() {
	for _, name := range names() {
		if proc := p.procs[name]; proc != nil && proc.r.Report() == nil {
			for _, q := range p.Queues() {
				p.resume(proc, q)
			}
		}
	}
}
