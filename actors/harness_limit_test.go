package actors

import (
	"reflect"
	"slices"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// checkSpan is the span of I9: no offset starts that is too far above one that has started and is not done. It is checked
// here, where messages run, since nobody else sees the highest offset in flight. The caller holds mu.
func (w *world) checkSpan(r ref) {
	l, span := r.lease(), w.spec.opts.Limits.OrDefaults().Span

	for o := range w.open[l] {
		if int64(r.offset-o) >= span {
			w.breachf("I9", "%s starts at offset %d of %s while %d is not done; the span is %d", r.id, r.offset, r.queue, o, span)
		}
	}

	if w.complete[l][r.offset] || len(w.expected[r.id]) == 0 {
		return // whatever still runs of it
	}

	if w.open[l] == nil {
		w.open[l] = make(map[pipeline.Offset]struct{})
	}

	w.open[l][r.offset] = struct{}{}
}

// shut notes that an attempt is not in flight any more. The caller holds mu.
func (w *world) shut(a attempt) { delete(w.open[a.lease()], a.offset) }

// checkInboxes is I10: the inboxes of a channel hold no more than what all credit together can become there.
func (p *proc) checkInboxes(s *Snapshot) {
	w := p.w

	for i := range s.Channels {
		if most := (p.creditOf(s) + p.left) * w.spec.copies(); s.Channels[i].Waiting > most {
			w.breachf("I10", "%s: %d messages wait for %s, with %d queues", p.name, s.Channels[i].Waiting, s.Channels[i].Name, len(s.Queues))
		}
	}
}

// creditOf is the credit of all queues together.
func (p *proc) creditOf(s *Snapshot) int {
	return len(s.Queues) * p.w.spec.opts.Limits.OrDefaults().Messages
}

// checkMailboxes is I10 too. In a moment of rest only the mailboxes of lanes that are inside a call hold anything: a wake
// for their inbox and one for their timer, and a flush for each end of a queue.
func (p *proc) checkMailboxes(s *Snapshot) {
	const (
		wakes = 4
		every = 4 // to walk the registry takes as long as a whole look without it
	)

	if p.w.stats.snapshots%every != 0 {
		return
	}

	most := p.creditOf(s) + 2*p.ends + wakes

	for _, processes := range p.r.system.ProcessRegistry.LocalPIDs.LocalPIDs {
		processes.IterCb(func(name string, process any) {
			if n := mailboxOf(process); n > most {
				p.w.breachf("I10", "%s: %d messages are in the mailbox of %s, %d at most", p.name, n, name, most)
			}
		})
	}
}

// mailboxOf returns how many messages an actor has not taken up. protoactor keeps mailboxes to itself.
func mailboxOf(process any) int {
	p, ok := process.(*actor.ActorProcess)
	if !ok {
		return 0
	}

	field := reflect.ValueOf(p).Elem().FieldByName("mailbox")
	mailbox, ok := reflect.TypeAssert[actor.Mailbox](reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem())
	if !ok {
		return 0
	}

	return mailbox.UserMessageCount()
}

// checkStart is where a group begins that has no offset: never below what its job asks for. The caller holds mu.
func (w *world) checkStart(r ref) {
	born := w.born[r.id]
	if r.queue.Topic == consumer.RetryTopic(harnessGroup) || born >= w.joined[r.member] {
		return
	}

	// A time that is yet to come means the end of the queue.
	if from, timed := w.spec.start.Time(); w.spec.start.IsLast() || timed && w.began.Add(born).Before(from) {
		w.breachf("start", "%s was published after %s and runs, though the job starts at %s", r.id, born, w.spec.start)
	}
}

// noteStart notes the first commit of a reader in a queue, which is where it begins. The caller holds mu.
func (w *world) noteStart(at place) {
	if _, ok := w.startAt[at.reader]; !ok && !w.spec.start.IsFirst() && at.queue.Topic == "in" {
		w.startAt[at.reader] = at.offset
	}
}

// leftOver says whether a seek may have left out a message. The caller holds mu.
func (w *world) leftOver(at place) bool {
	return slices.ContainsFunc(w.skipped[at.reader], func(r consumer.Run) bool { return r.From <= at.offset && at.offset < r.To })
}

// leftOut says whether a message lies below the start, and checks that it may. The caller holds mu.
func (w *world) leftOut(id string, at place) bool {
	if at.queue.Topic != "in" || at.offset >= w.startAt[at.reader] {
		return false
	}

	if from, timed := w.spec.start.Time(); timed && !w.began.Add(w.born[id]).Before(from) {
		w.breachf("start", "%s was published after %s and was left out, though the job starts at %s", id, w.born[id], from)
	}

	return true
}
