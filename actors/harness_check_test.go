package actors

import (
	"time"

	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// checkSnapshot checks what a job says of itself in a moment of rest. The caller holds the world's mu.
func (p *proc) checkSnapshot(s *Snapshot) {
	w := p.w

	for _, k := range s.Contradictions(p.r.plan, w.spec.opts.Limits) {
		w.breachf(k.Rule, "%s: %s: %s", p.name, k.Queue, k.Text)
	}

	p.checkInboxes(s)
	p.checkMailboxes(s)
	p.checkOverdue()
}

// copies is how many parts of one message can be on their way at a time.
func (s *spec) copies() int {
	const fan = 3

	n := 1

	for i := range s.channels {
		for _, k := range s.channels[i].stages {
			if k == stageFan {
				n *= fan
			}
		}

		n *= max(1, len(s.channels[i].routes))
	}

	return n
}

// checkOverdue finds calls that are past their deadline and were not given up. The queue's last owner has other worries.
func (p *proc) checkOverdue() {
	w := p.w

	for id, calls := range w.calls {
		for _, c := range calls {
			ran := time.Since(c.since)
			if c.p == p && !c.hung && !p.revoked[c.refs[0].lease()] && ran > w.spec.channels[c.channel].timeout+lateness(p.r.plan) {
				w.breachf("deadline", "%s runs in %s for %s", id, w.where(c), ran)
			}
		}
	}
}

// checkBooks is I1 at the end of a run: every message that was published has come to one end.
func (w *world) checkBooks() {
	fates := w.b.Fates(harnessGroup, "in")

	w.mu.Lock()
	defer w.mu.Unlock()

	for id := range w.expected {
		for member := range w.joined {
			w.checkEnd(id, member, fates[id])
		}
	}

	w.checkLastWrites()
}

// checkEnd checks that a message has come to one end for one reader. The caller holds mu.
func (w *world) checkEnd(id, member string, f consumertest.Fate) {
	last := place{reader: reader{member: member, queue: f.Queue}, offset: f.Offset}

	if w.leftOut(id, last) {
		return
	}

	ends := f.Dead
	if (w.done[last] || w.leftOver(last)) && f.Dead == 0 {
		ends++
	}

	if ends != 1 || f.Delivered != f.SentBack+1 || f.Delivered > w.spec.retry.Attempts {
		w.breachf("I1", "%s: %d dead letters, delivered %d times and sent back %d times, last at %v, which is done: %v",
			id, f.Dead, f.Delivered, f.SentBack, last, w.done[last])
	}
}

// checkLastWrites is I7 for sinks: inside one ownership the last writes of a key are in the order of its offsets, for all
// that got finished.
func (w *world) checkLastWrites() {
	for s, writes := range w.lastWrite {
		for o, n := range writes {
			for other, m := range writes {
				if o < other && n > m && w.stays(s, o) && w.stays(s, other) {
					w.breachf("I7", "%s: offset %d of key %q was written after %d (%v)", w.spec.site(s.channel, s.stage), o, s.key, other, s.lease)
				}
			}
		}
	}
}

// stays says whether an attempt is complete for good: the owner has committed it, and has neither handed it back nor dropped it.
func (w *world) stays(s orderSlot, o pipeline.Offset) bool {
	l := s.lease
	back := attempt{place: w.placeOf(s.member, l.Queue, o), epoch: l.Epoch}

	return w.commits[l].Finished(o) && w.complete[l][o] && !w.returned[back]
}

// explain prints what the jobs say of themselves when a run does not come to its end.
func (p *plan) explain() {
	for _, proc := range p.procs {
		s, err := proc.r.Snapshot(p.t.Context())
		if err != nil {
			continue
		}

		p.mu.Lock()
		for i := range s.Queues {
			q := &s.Queues[i]
			p.notef("%s: %+v, blocked by %+v", proc.name, *q, q.Blocking)
		}

		p.notef("%s: %+v; %+v", proc.name, s.Channels, s.Counts)
		p.mu.Unlock()
	}
}
