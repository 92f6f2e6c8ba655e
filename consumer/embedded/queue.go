package embedded

import (
	"sync"

	"github.com/millrace/millrace/pipeline"
)

// queue is one log: the records first <= offset < end, without gaps.
type queue struct {
	id   queueID
	name pipeline.Queue

	// next is the state after the last applied write. It belongs to who holds the store's turn.
	next queueState

	mu sync.Mutex
	// shown is the durable state, which readers see. Guarded by mu.
	shown queueState
	// changed is closed at the next change of shown, when somebody waits for it. Guarded by mu.
	changed chan struct{}
}

// queueState is what the store says about a queue beside its records.
type queueState struct {
	first, end pipeline.Offset
	// firstPos and endPos are the bytes of records that were ever appended below first and end.
	firstPos, endPos int64
	// stored is the time of the last record, in nanoseconds of Unix time.
	stored int64
}

const queueStateFields = 5

// begin makes the state what the store says, and wakes who waits for a change. The caller has the store alone.
func (q *queue) begin(s queueState) {
	q.mu.Lock()
	defer q.mu.Unlock()

	q.next, q.shown = s, s
	q.wake()
}

// wake tells who waits for a change. The caller holds mu.
func (q *queue) wake() {
	if q.changed != nil {
		close(q.changed)
		q.changed = nil
	}
}

// view returns the durable state.
func (q *queue) view() queueState {
	q.mu.Lock()
	defer q.mu.Unlock()

	return q.shown
}

// watch returns the durable state and a Go channel that is closed when it changes.
func (q *queue) watch() (queueState, <-chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if q.changed == nil {
		q.changed = make(chan struct{})
	}

	return q.shown, q.changed
}

// show makes a state known to readers. Writers may become durable in any order; each end grows on its own.
func (q *queue) show(s queueState) {
	q.mu.Lock()
	defer q.mu.Unlock()

	if s.end > q.shown.end {
		q.shown.end, q.shown.endPos, q.shown.stored = s.end, s.endPos, s.stored
	}

	if s.first > q.shown.first {
		q.shown.first, q.shown.firstPos = s.first, s.firstPos
	}

	q.wake()
}

func (e *encoder) queueState(key []byte, s queueState) ([]byte, error) {
	e.begin(queueStateFields)
	e.int(int64(s.first))
	e.int(int64(s.end))
	e.int(s.firstPos)
	e.int(s.endPos)
	e.int(s.stored)

	return e.sealed(key)
}

func (d *decoder) queueState(key, value []byte) (queueState, error) {
	d.begin(key, value, queueStateFields)

	s := queueState{first: pipeline.Offset(d.count()), end: pipeline.Offset(d.count())}
	s.firstPos, s.endPos, s.stored = d.count(), d.count(), d.int()

	if s.first > s.end || s.firstPos > s.endPos {
		d.fail()
	}

	return s, d.end()
}

func (e *encoder) topic(key []byte, t *topic) ([]byte, error) {
	e.begin(2)
	e.int(int64(t.id))
	e.int(int64(len(t.queues)))

	return e.sealed(key)
}

func (d *decoder) topic(key, value []byte) (id uint32, queues int, err error) {
	d.begin(key, value, 2)
	id, queues = d.id(), int(d.count())

	if queues < 1 || queues > maxQueues {
		d.fail()
	}

	return id, queues, d.end()
}

// single is the value of a group (its id) and of the count of openings.
func (e *encoder) single(key []byte, n uint32) ([]byte, error) {
	e.begin(1)
	e.int(int64(n))

	return e.sealed(key)
}

func (d *decoder) single(key, value []byte) (uint32, error) {
	d.begin(key, value, 1)
	n := d.id()

	return n, d.end()
}
