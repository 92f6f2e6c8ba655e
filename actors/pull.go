package actors

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// pullBytes is about how much one pull asks for. Rule 1 of the speed rules.
const pullBytes = 128 << 10

// puller is the pull-queue actor of one owned queue: it pulls by offset, never more than its credit, one pull at a time,
// and feeds the entry channel. It never blocks: the pulls run on a goroutine of its own.
type puller struct {
	*job

	self   *actor.PID
	slot   *slot
	entry  *channel
	credit consumer.Credit
	// done are the runs that are finished already, as the checkpoint said; they are not admitted again.
	done []consumer.Run
	// next is the offset to pull next; held are pulled messages that wait for credit.
	next pipeline.Offset
	held []*pipeline.Message
	// pulling: a pull is under way; its number is seq, and answers of other numbers are old.
	pulling bool
	seq     uint64
	// wishes has what the goroutine that pulls does next; nil before the first pull. It has room for the one pull.
	wishes  chan pullWish
	cancel  context.CancelFunc
	ctx     context.Context // the puller's lifetime
	paused  bool
	stopped bool
	tries   int
	timer   *time.Timer
	// behind is when the broker first said that its queue ends below next; 0 when it does not.
	behind int64
	spread spread
	out    []entry
}

// pullStatus is what others may know of a puller. The puller writes it once a pull.
type pullStatus struct {
	mu sync.Mutex
	// next and end are the offset to pull next and the broker's end of the queue.
	next, end pipeline.Offset
	// waits says what a pull waits for, since when by the clock; empty while one is under way or messages flow.
	waits string
	since int64
	// limit is what is used up while waits is credit; asked is when the pull under way began, by the clock, 0 when none is.
	limit string
	asked int64
	// err is the last pull's error and retry when it is tried again, by the clock; nil and 0 after a good one.
	err   error
	retry int64
	// paused says why, empty when not.
	paused string
}

func (s *pullStatus) update(f func(*pullStatus)) {
	s.mu.Lock()
	defer s.mu.Unlock()

	f(s)
}

type (
	// beginPulls starts a puller, when the tracker knows its queue; stopPulls ends it, and it answers with pullsStopped.
	beginPulls   struct{ internal }
	stopPulls    struct{ internal }
	pullsStopped struct {
		internal

		slot *slot
	}
	pulled struct {
		internal

		seq   uint64
		batch consumer.Batch
		err   error
	}
	pullAgain struct {
		internal

		seq uint64
	}
	setPaused struct {
		internal

		on  bool
		why string
	}
)

func newPuller(j *job, s *slot, from consumer.Checkpoint) *puller {
	p := &puller{
		job: j, slot: s, entry: j.channels[j.plan.Entry], credit: consumer.NewCredit(j.opts.Limits, from.Next),
		done: from.Done, next: from.Next,
	}
	p.ctx, p.cancel = context.WithCancel(j.ctx)
	s.pull.next, s.pull.end = from.Next, from.Next

	return p
}

// Receive is the pull-queue actor's behaviour.
func (p *puller) Receive(c actor.Context) {
	defer p.contain("a pull-queue actor")

	switch m := c.Message().(type) {
	case *actor.Started:
		p.self = c.Self()
	case beginPulls:
		p.goOn()
	case *refund:
		p.credit.Give(m.messages, m.bytes, m.low)
		p.goOn()
	case *pulled:
		if m.seq == p.seq {
			p.pulling = false
			p.slot.pull.update(func(s *pullStatus) { s.asked = 0 })
			p.take(m)
		}
	case *pullAgain:
		if m.seq == p.seq {
			p.timer = nil
			p.goOn()
		}
	case *setPaused:
		p.paused = m.on
		p.slot.pull.update(func(s *pullStatus) { s.paused = m.why })
		p.goOn()
	case stopPulls:
		p.stop()
		p.root.Send(p.engine, &pullsStopped{slot: p.slot})
	case *actor.Stopping:
		p.stop()
	}
}

// stop ends pulling; nothing is admitted any more.
func (p *puller) stop() {
	p.stopped = true
	p.held = nil
	p.seq++
	p.cancel()
	p.slot.pull.update(func(s *pullStatus) { s.asked = 0 })

	if p.timer != nil {
		p.timer.Stop()
	}
}

// goOn admits what is held and pulls, as far as the credit goes.
func (p *puller) goOn() {
	if p.stopped || p.pulling || p.timer != nil {
		return
	}

	p.admitHeld()

	room := p.credit.Room()
	// The next message is not known yet; a probe of no size at the next offset tells whether the span has room.
	blocked := len(p.held) > 0 || room.Messages == 0 || !p.credit.Fits(p.next, 0)

	switch {
	case p.paused:
		p.waits("a pause")
	case blocked:
		p.waitsForCredit(room)
	default:
		p.pull(consumer.Limit{Messages: min(room.Messages, blockSize), Bytes: min(room.Bytes, pullBytes)})
	}
}

func (p *puller) waits(what string) {
	p.slot.pull.update(func(s *pullStatus) {
		if s.waits != what {
			s.waits, s.since = what, p.clock.now()
		}
	})
}

// waitsForCredit notes which limit is used up.
func (p *puller) waitsForCredit(room consumer.Limit) {
	at, size := p.next, int64(0)
	if room.Messages > 0 && len(p.held) > 0 {
		at, size = p.held[0].Origin.Offset, int64(p.held[0].Size())
	}

	limit := p.credit.Short(at, size)

	p.slot.pull.update(func(s *pullStatus) { s.limit = limit })
	p.waits(waitsCredit)
}

// pullWish is a pull that is wanted.
type pullWish struct {
	seq   uint64
	from  pipeline.Offset
	limit consumer.Limit
}

// pull has the goroutine that pulls ask the broker. It is the same for all pulls, since the stack of a new one would have to
// grow each time.
func (p *puller) pull(limit consumer.Limit) {
	if p.wishes == nil {
		p.wishes = make(chan pullWish, 1)

		go p.keepPulling(p.self, p.wishes)
	}

	p.pulling = true
	p.seq++
	p.slot.pull.update(func(s *pullStatus) { s.asked = max(p.clock.now(), 1) })
	p.wishes <- pullWish{seq: p.seq, from: p.next, limit: limit}
}

// keepPulling does what is asked until the puller ends.
func (p *puller) keepPulling(to *actor.PID, wishes <-chan pullWish) {
	for {
		select {
		case w := <-wishes:
			batch, err := p.member.Pull(p.ctx, p.slot.lease, w.from, w.limit)
			if err == nil {
				err = checkBatch(&batch, p.slot.lease.Queue, w.from)
			}

			p.root.Send(to, &pulled{seq: w.seq, batch: batch, err: err})
		case <-p.ctx.Done():
			return
		}
	}
}

// checkBatch refuses an answer that cannot be: an unknown answer is an error, never an offset.
func checkBatch(b *consumer.Batch, q pipeline.Queue, from pipeline.Offset) error {
	next := from

	for i, m := range b.Messages {
		if m == nil || m.Origin.Offset < next || m.Origin.Queue != q || m.Origin.Delivery < 1 {
			return fmt.Errorf("actors: %s: message %d of a pull at %d makes no sense: %w", q, i, from, errNonsense)
		}

		next = m.Origin.Offset + 1
	}

	if b.Next < next || b.End < b.Next {
		return fmt.Errorf("actors: %s: a pull at %d says next %d and end %d: %w", q, from, b.Next, b.End, errNonsense)
	}

	return nil
}

var errNonsense = errors.New("the broker's answer contradicts itself")

// take works off the answer to a pull.
func (p *puller) take(m *pulled) {
	if m.err != nil {
		p.failed(m.err)

		return
	}

	p.tries, p.behind = 0, 0
	moved := m.batch.Next > p.next
	p.next = m.batch.Next
	p.held = m.batch.Messages

	p.slot.pull.update(func(s *pullStatus) {
		s.next, s.end, s.err, s.retry = m.batch.Next, m.batch.End, nil, 0

		switch {
		case len(m.batch.Messages) > 0:
			s.waits = ""
		case s.waits != "messages":
			s.waits, s.since = "messages", p.clock.now()
		}
	})

	p.skipDone()
	p.admitHeld()

	if moved && len(p.held) == 0 {
		p.root.Send(p.tracker, &passed{slot: p.slot, next: p.next})
	}

	p.goOn()
}

// skipDone drops the messages that the checkpoint says are finished.
func (p *puller) skipDone() {
	if len(p.done) == 0 {
		return
	}

	kept := p.held[:0]

	for _, m := range p.held {
		if !consumer.ContainsRun(p.done, m.Origin.Offset) {
			kept = append(kept, m)
		}
	}

	p.held = kept

	if p.next >= p.done[len(p.done)-1].To {
		p.done = nil
	}
}

// admitHeld admits as much of what is held as the credit allows, a block at a time.
func (p *puller) admitHeld() {
	for len(p.held) > 0 && !p.paused {
		n := 0

		for n < len(p.held) && n < blockSize {
			m := p.held[n]
			size := int64(m.Size())

			if !p.credit.Fits(m.Origin.Offset, size) {
				break
			}

			p.credit.Take(1, size)

			n++
		}

		if n == 0 {
			return
		}

		p.admit(p.held[:n])
		p.held = p.held[n:]

		if len(p.held) == 0 {
			p.root.Send(p.tracker, &passed{slot: p.slot, next: p.next})
		}
	}
}

// admit tells the tracker first and the lanes afterwards, so that no completion can overtake its admission.
func (p *puller) admit(messages []*pipeline.Message) {
	b := newBlock(p.slot, messages)
	p.aim(b, messages)
	p.root.Send(p.tracker, &admit{block: b})

	if len(p.entry.inboxes) == 1 {
		p.entry.wake(p.entry.inboxes[0].pushNew(messages, b.tallies[:]))

		return
	}

	p.out = p.out[:0]
	for i, m := range messages {
		p.out = append(p.out, entry{m: m, t: &b.tallies[i]})
	}

	p.spread.deliver(p.entry, p.out)
	clear(p.out)
}
