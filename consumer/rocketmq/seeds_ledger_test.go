package rocketmq_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// spot is where a record stands, and tenure an ownership of its queue: by which process, in which epoch.
type spot struct {
	queue  pipeline.Queue
	offset pipeline.Offset
}

type tenure struct {
	p     *process
	queue pipeline.Queue
	epoch uint64
}

// ledger is what a run has seen of every message, at the broker's side of each process and inside of its stages. It checks the
// rules of docs/guarantees.md while they may be broken.
type ledger struct {
	// frail: the brokers lie about stored offsets or forget some, so that a queue may begin where it has been before.
	frail bool

	mu sync.Mutex
	// ids are the records that were pulled; done are those that were written, back those that a broker has taken back.
	ids        map[spot]string
	done, back map[spot]bool
	// written counts the writes of each message, spoilt the calls to give it back that were answered with an error.
	written, spoilt, returned map[string]int
	// under are the spots that were written, and that were given back, in each tenure.
	under, gave map[tenure]map[spot]bool
	running     map[*process]map[spot]bool
	// commits are the last confirmed checkpoints of a tenure, starts what it began with, sending what it is about to commit.
	commits, starts map[tenure]consumer.Checkpoint
	sending         map[tenure]pipeline.Offset
	// confirmed is the least that a broker must have of each queue, highest the most that it has ever confirmed: two members may
	// have a queue for a moment.
	confirmed, highest map[pipeline.Queue]pipeline.Offset
	revoked            map[tenure]bool
	over               bool
	began              time.Time
	trace              []string
	broken             []string
}

func newLedger(frail bool) *ledger {
	return &ledger{
		frail: frail, began: time.Now(), ids: map[spot]string{}, done: map[spot]bool{}, back: map[spot]bool{},
		written: map[string]int{}, spoilt: map[string]int{}, returned: map[string]int{},
		under: map[tenure]map[spot]bool{}, gave: map[tenure]map[spot]bool{}, running: map[*process]map[spot]bool{},
		commits: map[tenure]consumer.Checkpoint{}, starts: map[tenure]consumer.Checkpoint{},
		confirmed: map[pipeline.Queue]pipeline.Offset{}, highest: map[pipeline.Queue]pipeline.Offset{}, revoked: map[tenure]bool{},
		sending: map[tenure]pipeline.Offset{},
	}
}

// notef writes a line of the course, brokenf that of a rule. The caller holds mu, here and below.
func (l *ledger) notef(format string, args ...any) {
	l.trace = append(l.trace, fmt.Sprintf("%14s  ", time.Since(l.began))+fmt.Sprintf(format, args...))
}

func (l *ledger) brokenf(format string, args ...any) {
	l.broken = append(l.broken, fmt.Sprintf(format, args...))
	l.notef("BROKEN "+format, args...)
}

func spotOf(m *pipeline.Message) spot { return spot{m.Origin.Queue, m.Origin.Offset} }

// begin is I11 and I6: a message runs once at a time, and not again where its owner began behind it.
func (l *ledger) begin(p *process, m *pipeline.Message) {
	s, t := spotOf(m), tenure{p, m.Origin.Queue, m.Origin.Epoch}

	if l.running[p][s] {
		l.brokenf("I11: %s at %v runs twice at a time in %s", m.ID, s, p.name)
	}

	if l.over {
		l.brokenf("I6: %s at %v runs after a clean stop", m.ID, s)
	}

	if from, ok := l.starts[t]; ok && from.Finished(s.offset) {
		l.brokenf("I6: %s at %v runs again, though %s began at %v", m.ID, s, p.name, from)
	}

	if l.running[p] == nil {
		l.running[p] = map[spot]bool{}
	}

	l.running[p][s] = true
}

// write notes that a message was stored, which happens once in a tenure.
func (l *ledger) write(p *process, m *pipeline.Message) {
	s, t := spotOf(m), tenure{p, m.Origin.Queue, m.Origin.Epoch}

	if l.under[t] == nil {
		l.under[t] = map[spot]bool{}
	}

	if l.under[t][s] {
		l.brokenf("I6: %s at %v is written again by %s in one ownership", m.ID, s, p.name)
	}

	l.under[t][s], l.done[s] = true, true
	l.written[m.ID]++
}

// commit is I2 and I3, of a checkpoint that is about to be sent.
func (l *ledger) commit(t tenure, c consumer.Checkpoint) {
	for o := range c.Next {
		l.covers(t, spot{t.queue, o}, c)
	}

	for _, r := range c.Done {
		for o := r.From; o < r.To; o++ {
			l.covers(t, spot{t.queue, o}, c)
		}
	}

	if last, ok := l.commits[t]; ok && !c.Includes(last) {
		l.brokenf("I3: %s commits %s: %v after %v", t.p.name, t.queue, c, last)
	}
}

func (l *ledger) covers(t tenure, s spot, c consumer.Checkpoint) {
	if !l.done[s] && !l.back[s] {
		l.brokenf("I2: %s commits %s: %v, which covers %d (%s)", t.p.name, t.queue, c, s.offset, l.ids[s])
	}
}

// stored notes what a broker has of a queue after a commit: at least what it confirms, unless another one is under way or went
// unheard, which may have come later.
func (l *ledger) stored(t tenure, next pipeline.Offset, err error) {
	delete(l.sending, t)

	if err == nil {
		l.confirmed[t.queue] = next
		l.highest[t.queue] = max(l.highest[t.queue], next)
	}

	l.confirmed[t.queue] = min(l.confirmed[t.queue], next)

	for other, under := range l.sending {
		if other.queue == t.queue {
			l.confirmed[t.queue] = min(l.confirmed[t.queue], under)
		}
	}
}

// gives notes what came of giving a message back.
func (l *ledger) gives(t tenure, m *pipeline.Message, what string, err error) {
	s := spotOf(m)
	l.notef("%s: %s of %s at %v, delivery %d: %v", t.p.name, what, m.ID, s, m.Origin.Delivery, err)

	if err != nil {
		l.spoilt[m.ID]++

		return
	}

	if l.gave[t] == nil {
		l.gave[t] = map[spot]bool{}
	}

	if l.gave[t][s] {
		l.brokenf("I8: %s of %s at %v, which %s has given back already", what, m.ID, s, t.p.name)
	}

	l.gave[t][s], l.back[s] = true, true
	l.returned[m.ID]++
}

// on checks what a job says of itself.
func (l *ledger) on(p *process, e actors.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if p.crashed {
		return
	}

	switch e := e.(type) {
	case *actors.QueueAssigned:
		t := tenure{p, e.Queue, e.Epoch}
		l.starts[t] = p.answers[e.Queue]
		l.notef("%s: has %s in epoch %d from %d, done %d", p.name, e.Queue, e.Epoch, e.From, e.Done)

		if e.From < p.asked[e.Queue] && !l.frail {
			l.brokenf("I6: %s begins %s at %d, though %d was committed", p.name, e.Queue, e.From, p.asked[e.Queue])
		}
	case *actors.QueueRevoked:
		l.onRevoked(tenure{p, e.Queue, e.Epoch}, e)
	case *actors.CommitFailed:
		l.notef("%s: commit of %s failed: %v", p.name, e.Queue, e.Err)
	case *actors.OffsetRewound:
		l.notef("%s: %s is at %d, not at %d; followed %v", p.name, e.Queue, e.To, e.From, e.Followed)
	}
}

// onRevoked is I6: nothing that was done in an ownership that ends in order is left out of its last commit.
func (l *ledger) onRevoked(t tenure, e *actors.QueueRevoked) {
	l.notef("%s: gives up %s in epoch %d at %d, unfinished %d: %v", t.p.name, e.Queue, e.Epoch, e.Committed, e.Unfinished, e.Err)
	l.revoked[t] = true

	if e.Err != nil || e.Unfinished > 0 {
		return
	}

	last, ok := l.commits[t]
	if !ok {
		last = l.starts[t]
	}

	for s := range l.under[t] {
		if !last.Finished(s.offset) {
			l.brokenf("I6: %s gave up %s in order, but %d is done and not in %v", t.p.name, e.Queue, s.offset, last)
		}
	}
}

// balance is I1 and I8 at the end: each message was written, or is dead if it had to be, and there are no more copies of it than
// can be explained, so many for each call that gives it back: an answer that is not heard has the next broker asked for the same.
func (l *ledger) balance(t *testing.T, n int, retries, dead map[string]int, copies int) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()

	for i := range n {
		id := fmt.Sprintf("m%d", i)
		bad := fateOf(id).dead

		switch {
		case bad && (dead[id] == 0 || l.written[id] > 0), !bad && (l.written[id] == 0 || dead[id] > 0):
			l.brokenf("I1: %s was written %d times and is %d dead letters; it is bad: %v", id, l.written[id], dead[id], bad)
		case retries[id]+dead[id] > copies*(l.returned[id]+l.spoilt[id]):
			l.brokenf("I8: of %s there are %d copies to retry and %d dead letters, after %d returns and %d with an error",
				id, retries[id], dead[id], l.returned[id], l.spoilt[id])
		}
	}
}

// verdict says which rules were broken.
func (l *ledger) verdict() []string {
	l.mu.Lock()
	defer l.mu.Unlock()

	return slices.Clone(l.broken[:min(len(l.broken), 8)])
}

// watch has the ledger see the calls of a process.
func (l *ledger) watch(p *process) *consumertest.Around {
	return &consumertest.Around{
		Pull: func(_ consumer.Lease, call func() (consumer.Batch, error)) (consumer.Batch, error) {
			batch, err := call()

			l.mu.Lock()
			defer l.mu.Unlock()

			for _, m := range batch.Messages {
				l.ids[spotOf(m)] = m.ID
			}

			return batch, err
		},
		Stored: func(q pipeline.Queue, call func() (consumer.Checkpoint, error)) (consumer.Checkpoint, error) {
			l.mu.Lock()
			confirmed := l.confirmed[q]
			l.mu.Unlock()

			c, err := call()

			l.mu.Lock()
			defer l.mu.Unlock()

			p.answers[q], p.asked[q] = c, confirmed

			return c, err
		},
		Commit: func(of consumer.Lease, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
			return l.watchCommit(tenure{p, of.Queue, of.Epoch}, c, call)
		},
		SendBack: func(m *pipeline.Message, _ time.Duration, call func(*pipeline.Message) error) error {
			return l.watchReturn(p, m, "send-back", call)
		},
		DeadLetter: func(m *pipeline.Message, _ consumer.Cause, call func(*pipeline.Message) error) error {
			return l.watchReturn(p, m, "dead letter", call)
		},
	}
}

// watchCommit is I4 too: nothing is stored for a queue that was given up.
func (l *ledger) watchCommit(t tenure, c consumer.Checkpoint, call func(consumer.Checkpoint) error) error {
	l.mu.Lock()
	late := l.revoked[t]
	l.commit(t, c)
	l.sending[t] = c.Next
	l.mu.Unlock()

	err := call(c)

	l.mu.Lock()
	defer l.mu.Unlock()

	l.notef("%s: commit %s in epoch %d: %v: %v", t.p.name, t.queue, t.epoch, c, err)
	l.stored(t, c.Next, err)

	if err != nil {
		return err
	}

	if late && !t.p.crashed {
		l.brokenf("I4: %s commits %s: %v after it was given up", t.p.name, t.queue, c)
	}

	l.commits[t] = c

	return nil
}

func (l *ledger) watchReturn(p *process, m *pipeline.Message, what string, call func(*pipeline.Message) error) error {
	err := call(m)

	l.mu.Lock()
	defer l.mu.Unlock()

	l.gives(tenure{p, m.Origin.Queue, m.Origin.Epoch}, m, what, err)

	return err
}
