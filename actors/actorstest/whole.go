package actorstest

import (
	"fmt"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// place is where a record stands at the broker.
type place struct {
	queue  pipeline.Queue
	offset pipeline.Offset
}

func (p place) String() string { return fmt.Sprintf("%s at %d", p.queue, p.offset) }

// attempt is one run of a record under one ownership of its queue, and what has become of it so far.
type attempt struct {
	place

	lease consumer.Lease
	id    string
	whole *whole
	// failed: some call of it has. vague: one hung, so that nobody knows what still comes of it. back: the broker has it again.
	failed, vague, back bool
}

// whole is what ends when all of its parts have: an attempt, or what a gather has made of parts of several.
type whole struct {
	// source is the attempt; nil of something gathered.
	source *attempt
	// parts are those that are known by their messages, routed how many are on their way to a channel.
	parts  map[*pipeline.Message]bool
	routed map[int]int
	// parents are what was gathered. void: that is gathered once more.
	parents []part
	void    bool
}

// part is a message inside of the job, what it is a part of, and the key by which its channel orders it.
type part struct {
	m     *pipeline.Message
	whole *whole
	key   string
}

func newWhole() *whole {
	return &whole{parts: make(map[*pipeline.Message]bool), routed: make(map[int]int)}
}

// size is how many parts are open.
func (w *whole) size() int {
	n := len(w.parts)
	for _, k := range w.routed {
		n += k
	}

	return n
}

// attempts are the ones that a whole stands for.
func (w *whole) attempts() []*attempt {
	if w.source != nil {
		return []*attempt{w.source}
	}

	var all []*attempt
	for _, p := range w.parents {
		all = append(all, p.whole.attempts()...)
	}

	return all
}

// outcome is what has come of a call, or of those inside it: messages for the end of the channel, and for its routes, and
// messages that are tried again from a stage on.
type outcome struct {
	outs, missed []*pipeline.Message
	routed       map[int]int
}

func (o *outcome) add(other *outcome) {
	o.outs = append(o.outs, other.outs...)
	o.missed = append(o.missed, other.missed...)

	for target, n := range other.routed {
		o.route(target, n)
	}
}

func (o *outcome) route(target, n int) {
	if o.routed == nil {
		o.routed = make(map[int]int)
	}

	o.routed[target] += n
}

// book is what a course knows of all messages inside of the job. The course's lock guards it.
type book struct {
	attempts map[consumer.Lease]map[pipeline.Offset]*attempt
	// finished are the records of which an attempt has come to its end.
	finished map[place]bool
	// known are the messages that have come into a channel, gathered what was made of the last gathering of each.
	known    map[*pipeline.Message]part
	gathered map[*pipeline.Message]*whole
	// most is how many parts a message has had at a time, writes how often a sink has taken a part of it.
	most   int
	writes map[string]int
}

func newBook() book {
	return book{
		attempts: make(map[consumer.Lease]map[pipeline.Offset]*attempt),
		finished: make(map[place]bool),
		known:    make(map[*pipeline.Message]part),
		gathered: make(map[*pipeline.Message]*whole),
		most:     1,
		writes:   make(map[string]int),
	}
}

// pulled opens an attempt for a message that comes into the job.
func (b *book) pulled(l consumer.Lease, m *pipeline.Message, entry int) {
	if b.attempts[l] == nil {
		b.attempts[l] = make(map[pipeline.Offset]*attempt)
	}

	a := &attempt{place: place{queue: l.Queue, offset: m.Origin.Offset}, lease: l, id: m.ID, whole: newWhole()}
	a.whole.source = a
	a.whole.routed[entry] = 1
	b.attempts[l][m.Origin.Offset] = a
}

// arrive returns the part that a message is which comes into a channel, or to its end.
func (b *book) arrive(m *pipeline.Message, channel int) (part, bool) {
	p := part{m: m, key: m.Key}

	if h, ok := m.Memo().(*handle); ok { // perhaps a message that is known from the channel before
		p.whole = h.whole
		m.SetMemo(h.inner)
	} else if known, ok := b.known[m]; ok {
		return known, true
	} else if a := b.at(m); a != nil {
		p.whole = a.whole
	} else {
		return p, false
	}

	p.whole.routed[channel]--
	if p.whole.routed[channel] <= 0 {
		delete(p.whole.routed, channel)
	}

	p.whole.parts[m] = true
	b.known[m] = p

	return p, true
}

// at returns the attempt that a message says it belongs to, or nil.
func (b *book) at(m *pipeline.Message) *attempt {
	return b.attempts[consumer.Lease{Queue: m.Origin.Queue, Epoch: m.Origin.Epoch}][m.Origin.Offset]
}

// become puts what has come of a part in its place.
func (b *book) become(p part, o *outcome) {
	delete(p.whole.parts, p.m)

	for _, messages := range [][]*pipeline.Message{o.outs, o.missed} {
		for _, m := range messages {
			p.whole.parts[m] = true
			b.known[m] = part{m: m, whole: p.whole, key: p.key}
		}
	}

	for target, n := range o.routed {
		p.whole.routed[target] += n
	}

	b.settle(p.whole)
}

// gather makes a whole of parts; what an earlier gathering has made of one of them is void.
func (b *book) gather(w *whole, parts []part, o *outcome) {
	w.parents = parts

	for _, p := range parts {
		if old := b.gathered[p.m]; old != nil {
			old.void = true
		}

		b.gathered[p.m] = w
	}

	for target, n := range o.routed {
		w.routed[target] += n
	}

	b.settle(w)
}

// settle ends a whole that has no parts any more, and what it is a part of.
func (b *book) settle(w *whole) {
	n := w.size()
	b.most = max(b.most, n)

	switch {
	case n > 0 || w.void:
	case w.source != nil:
		b.finished[w.source.place] = true
	default:
		for _, p := range w.parents {
			delete(p.whole.parts, p.m)
			b.settle(p.whole)
		}
	}
}

// forget forgets the attempts under a lease from an offset on.
func (b *book) forget(l consumer.Lease, from pipeline.Offset) {
	for o := range b.attempts[l] {
		if o >= from {
			delete(b.attempts[l], o)
		}
	}
}

// handle goes with a message through the routes, and tells at the other end what it is a part of.
type handle struct {
	whole *whole
	inner pipeline.Memo
	body  []byte
	// routed counts the routes that have taken it.
	routed map[int]int
}

var _ pipeline.Memo = (*handle)(nil)

// Source returns the body that goes with the handle.
func (h *handle) Source() []byte { return h.body }

// handleOf gives a message a handle.
func handleOf(w *whole, m *pipeline.Message) *handle {
	h := &handle{whole: w, inner: m.Memo(), body: m.Body, routed: make(map[int]int)}
	m.SetMemo(h)

	return h
}
