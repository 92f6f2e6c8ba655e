package actors

import (
	"slices"

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

// parked is a message that waits in its lane for a retry in place, or behind one.
type parked struct {
	entry

	// due is when it is tried again, by the clock.
	due int64
	// err is why; nil for one that only waits for its turn.
	err *pipeline.StageError
}

// hold keeps an order key back: its messages stand in line, the earliest first, and only the first one may go on.
type hold struct {
	line []parked
	// left are the messages that were given up unfinished because their queue is closing.
	left []leftBehind
}

// leftBehind says that nothing of a slot may run any more that comes after seq: the next owner begins there.
type leftBehind struct {
	slot *slot
	seq  int64
}

// insert puts an entry into the line, at its place.
func (h *hold) insert(p parked) {
	at := len(h.line)
	for at > 0 && h.line[at-1].seq > p.seq {
		at--
	}

	h.line = slices.Insert(h.line, at, p)
}

// parking is what waits in one lane. It belongs to the lane; the lane's mutex guards it for those who only look.
type parking struct {
	// parked is used by unordered channels, holds by ordered ones.
	parked []parked
	holds  map[orderKey]*hold
	// seq numbered the last entry that an ordered lane took up.
	seq int64
}

// number gives an entry its place in the order of the lane, when it has none yet.
func (p *parking) number(e *entry) {
	if e.seq == 0 {
		p.seq++
		e.seq = p.seq
	}
}

// add parks an entry of an unordered channel until due.
func (p *parking) add(e entry, due int64, err *pipeline.StageError) {
	p.parked = append(p.parked, parked{entry: e, due: due, err: err})
}

// hold parks an entry of an ordered channel until due; later ones of its key are held back.
func (p *parking) hold(key orderKey, e entry, due int64, err *pipeline.StageError) {
	h := p.holds[key]
	if h == nil {
		h = &hold{}

		if p.holds == nil {
			p.holds = make(map[orderKey]*hold)
		}

		p.holds[key] = h
	}

	h.insert(parked{entry: e, due: due, err: err})
}

// putBack takes what an ordered lane has taken up before and does not get to now; the rest, which nobody has begun, is
// returned for the inbox.
func (p *parking) putBack(entries []entry, o pipeline.Order) []entry {
	for len(entries) > 0 && entries[0].seq != 0 {
		p.hold(keyOf(entries[0].m, o), entries[0], 0, nil)
		entries = entries[1:]
	}

	return entries
}

// turn is what a hold lets an entry do.
type turn uint8

const (
	turnRun turn = iota
	turnWait
	turnGiveUp
)

// follow says whether an entry may go on now; when an earlier one of its key is parked it is lined up behind it.
func (p *parking) follow(key orderKey, e entry) turn {
	h := p.holds[key]
	if h == nil {
		return turnRun
	}

	slot := e.t.slot()
	if !e.t.wanted() && slices.ContainsFunc(h.left, func(l leftBehind) bool { return l.slot == slot && l.seq < e.seq }) {
		return turnGiveUp
	}

	if len(h.line) > 0 && h.line[0].seq < e.seq {
		h.insert(parked{entry: e})

		return turnWait
	}

	p.tidy(key, h)

	return turnRun
}

// tidy forgets a hold that holds nothing back any more.
func (p *parking) tidy(key orderKey, h *hold) {
	h.left = slices.DeleteFunc(h.left, func(l leftBehind) bool { return l.slot.is(slotGone) })

	if len(h.line) == 0 && len(h.left) == 0 {
		delete(p.holds, key)
	}
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

	for key, h := range p.holds {
		k := 0
		for k < len(h.line) && n < len(dst) && h.line[k].due <= now {
			dst[n] = h.line[k].entry
			k++
			n++
		}

		h.line = slices.Delete(h.line, 0, k)
		p.tidy(key, h)
	}

	return n
}

// longest moves to dst the entry that has been due for the longest, if one is due by now.
func (p *parking) longest(now int64, dst []entry) int {
	best, of := -1, orderKey{}
	due := now + 1

	for i := range p.parked {
		if p.parked[i].due < due {
			best, due = i, p.parked[i].due
		}
	}

	for key, h := range p.holds {
		if len(h.line) > 0 && h.line[0].due < due {
			best, of, due = -1, key, h.line[0].due
		}
	}

	switch h := p.holds[of]; {
	case due > now:
		return 0
	case best >= 0:
		dst[0] = p.parked[best].entry
		p.parked = slices.Delete(p.parked, best, best+1)
	default:
		dst[0] = h.line[0].entry
		h.line = slices.Delete(h.line, 0, 1)
		p.tidy(of, h)
	}

	return 1
}

// next returns when the earliest parked entry is due; ok is false when there is none.
func (p *parking) next() (due int64, ok bool) {
	at := func(d int64) {
		if !ok || d < due {
			due, ok = d, true
		}
	}

	for i := range p.parked {
		at(p.parked[i].due)
	}

	for _, h := range p.holds {
		if len(h.line) > 0 {
			at(h.line[0].due)
		}
	}

	return due, ok
}

// retries is how many entries wait for a retry.
func (p *parking) retries() int {
	n := len(p.parked)

	for _, h := range p.holds {
		for i := range h.line {
			if h.line[i].err != nil {
				n++
			}
		}
	}

	return n
}

// drop removes and returns the parked entries that match, and those behind them that are of the same slot.
func (p *parking) drop(match func(e *entry, due int64) bool) []entry {
	var dropped []entry

	p.parked = slices.DeleteFunc(p.parked, func(e parked) bool {
		if match(&e.entry, e.due) {
			dropped = append(dropped, e.entry)

			return true
		}

		return false
	})

	for _, h := range p.holds {
		h.line = slices.DeleteFunc(h.line, func(e parked) bool {
			slot := e.t.slot()
			behind := !e.t.wanted() && slices.ContainsFunc(h.left, func(l leftBehind) bool { return l.slot == slot })

			if !behind && match(&e.entry, e.due) {
				h.left = append(h.left, leftBehind{slot: slot, seq: e.seq})
				behind = true
			}

			if behind {
				dropped = append(dropped, e.entry)
			}

			return behind
		})
	}

	return dropped
}
