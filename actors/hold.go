package actors

import (
	"github.com/millrace/millrace/pipeline"
)

// orderKey is what an ordered channel keeps in order: a key, or a queue.
type orderKey struct {
	key   string
	queue pipeline.Queue
}

// keyOf returns the order key of a message, by the same rule as pipeline.LaneOf: no key means the queue.
func keyOf(m *pipeline.Message, o pipeline.Order) orderKey {
	if o == pipeline.OrderByKey && m.Key != "" {
		return orderKey{key: m.Key}
	}

	return orderKey{queue: m.Origin.Queue}
}

// parked is a message that waits in its lane for a retry in place.
type parked struct {
	entry

	// due is when it is tried again, by the clock.
	due int64
	err *pipeline.StageError
}

// hold keeps an order key back while a message of it is parked: later ones line up here.
type hold struct {
	key orderKey
	// waiting is how many messages of the key are parked or being tried again.
	waiting   int
	followers []entry
	// closed: a message of the key was given up unfinished because its queue is closing. What comes later for a closing
	// queue must not run before it and is given up too.
	closed bool
}

// parking is what waits in one lane. It belongs to the lane; the lane's mutex guards it for those who only look.
type parking struct {
	parked []parked
	// holds is used by ordered channels only.
	holds map[orderKey]*hold
}

// add parks an entry until due. In an ordered channel key is held back from now on; otherwise h is nil.
func (p *parking) add(e entry, due int64, err *pipeline.StageError) {
	p.parked = append(p.parked, parked{entry: e, due: due, err: err})
}

// holdFor returns the hold of a key, with one more waiting.
func (p *parking) holdFor(key orderKey) *hold {
	h := p.holds[key]
	if h == nil || h.closed {
		h = &hold{key: key}

		if p.holds == nil {
			p.holds = make(map[orderKey]*hold)
		}

		p.holds[key] = h
	}

	h.waiting++

	return h
}

// turn is what a hold lets an entry do.
type turn uint8

const (
	turnRun turn = iota
	turnWait
	turnGiveUp
)

// follow says whether an entry may run now; when its key is held back the entry is lined up behind it.
func (p *parking) follow(key orderKey, e entry) turn {
	h := p.holds[key]

	switch {
	case h == nil:
		return turnRun
	case !h.closed:
		h.followers = append(h.followers, e)

		return turnWait
	case e.t.slot().is(slotOwned):
		delete(p.holds, key)

		return turnRun
	default:
		return turnGiveUp
	}
}

// free ends one message's part in a hold and returns the followers when it was the last.
func (p *parking) free(h *hold) []entry {
	h.waiting--
	if h.waiting > 0 || h.closed {
		return nil
	}

	delete(p.holds, h.key)

	return h.followers
}

// due moves what may be tried again by now to dst, as far as it has room.
func (p *parking) due(now int64, dst []entry) int {
	n, kept := 0, 0

	for i := range p.parked {
		if p.parked[i].due <= now && n < len(dst) {
			dst[n] = p.parked[i].entry
			n++

			continue
		}

		p.parked[kept] = p.parked[i]
		kept++
	}

	clear(p.parked[kept:])
	p.parked = p.parked[:kept]

	return n
}

// next returns when the earliest parked entry is due; ok is false when there is none.
func (p *parking) next() (due int64, ok bool) {
	for i := range p.parked {
		if !ok || p.parked[i].due < due {
			due, ok = p.parked[i].due, true
		}
	}

	return due, ok
}

// drop removes the parked entries that match and the followers of their keys whose queue is closing: dropped. Followers of
// other queues are free to run when nothing else holds their key: freed.
func (p *parking) drop(match func(e *entry, due int64) bool) (dropped, freed []entry) {
	kept := 0

	for i := range p.parked {
		e := p.parked[i]
		if !match(&e.entry, e.due) {
			p.parked[kept] = e
			kept++

			continue
		}

		dropped = append(dropped, e.entry)

		if e.hold == nil {
			continue
		}

		e.hold.closed = true
		e.hold.waiting--

		for _, f := range e.hold.followers {
			if f.t.slot().is(slotOwned) {
				freed = append(freed, f)
			} else {
				dropped = append(dropped, f)
			}
		}

		e.hold.followers = nil
	}

	clear(p.parked[kept:])
	p.parked = p.parked[:kept]

	return dropped, freed
}
