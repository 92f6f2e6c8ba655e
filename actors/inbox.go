package actors

import (
	"slices"
	"sync"

	"github.com/millrace/millrace/pipeline"
)

// entry is one message at a channel: where it stands and whom its end is reported to.
type entry struct {
	m *pipeline.Message
	t *tally
	// stage is the stage to go on with; len(stages) is the sink or the gather stage.
	stage int32
	// tries is how often that stage has been retried in place.
	tries int32
	// since is when a lane first took the message up, in nanoseconds of the process; 0 before that. The deadline of retries
	// in place counts from here.
	since int64
	// seq is the entry's place in the order of an ordered lane, from when the lane first takes it up; 0 before that.
	seq int64
}

// inbox is where messages wait for lanes. An unordered channel has one for all its lanes, which so share the work evenly;
// an ordered channel has one a lane. It is not a mailbox: what waits here is not lost when a lane is replaced, can be
// counted and looked at, and is bounded by the sum of credits. A lane is sent a wake message when its inbox was empty.
//
// Safe for concurrent use.
type inbox struct {
	mu sync.Mutex
	// ring holds n entries from head on; its length is a power of two.
	ring []entry
	head int
	n    int
	// idle are the lanes that found nothing and wait for a wake.
	idle []*lane
	// sharers is how many lanes take from this inbox.
	sharers int
}

const inboxMin = 64

func newInbox(sharers int) *inbox {
	return &inbox{ring: make([]entry, inboxMin), sharers: sharers}
}

// push appends entries and returns a lane to wake, if one is idle.
func (b *inbox) push(entries []entry) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.grow(len(entries))

	at := (b.head + b.n) & (len(b.ring) - 1)
	k := copy(b.ring[at:], entries)
	copy(b.ring, entries[k:])
	b.n += len(entries)

	return b.rouse()
}

// pushNew appends fresh entries, made of messages and their tallies where they stay: to make them elsewhere and push them
// costs 4 ns a message more.
func (b *inbox) pushNew(messages []*pipeline.Message, tallies []tally) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.grow(len(messages))

	for i, m := range messages {
		b.ring[(b.head+b.n+i)&(len(b.ring)-1)] = entry{m: m, t: &tallies[i]}
	}

	b.n += len(messages)

	return b.rouse()
}

// unread puts entries back to the front, in their order, and returns a lane to wake.
func (b *inbox) unread(entries []entry) *lane {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.grow(len(entries))

	for _, e := range slices.Backward(entries) {
		b.head = (b.head - 1) & (len(b.ring) - 1)
		b.ring[b.head] = e
		b.n++
	}

	return b.rouse()
}

// take moves up to len(dst) entries to dst, but no more than a fair share among the lanes unless that is too little to be
// worth sharing (see lane.least). When there are none, l is noted
// as idle and will be woken by the next push. It also returns another idle lane to wake when more is waiting.
func (b *inbox) take(l *lane, dst []entry) (int, *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.n == 0 {
		if !l.idle {
			b.idle = append(b.idle, l)
			l.idle = true
		}

		return 0, nil
	}

	b.unlist(l)

	k := min(len(dst), b.n, max(l.least, (b.n+b.sharers-1)/b.sharers))
	dst = dst[:k]

	first := copy(dst, b.ring[b.head:])
	copy(dst[first:], b.ring)
	b.forget(k)

	if b.n == 0 {
		b.shrink()

		return k, nil
	}

	return k, b.rouse()
}

// rest notes l as idle when nothing waits; it returns false when something does.
func (b *inbox) rest(l *lane) bool {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.n == 0 && !l.idle {
		b.idle = append(b.idle, l)
		l.idle = true
	}

	return b.n == 0
}

// remove takes out every waiting entry that match picks and returns them.
func (b *inbox) remove(match func(*entry) bool) []entry {
	b.mu.Lock()
	defer b.mu.Unlock()

	var out []entry

	kept := 0

	for i := range b.n {
		e := b.ring[(b.head+i)&(len(b.ring)-1)]
		if match(&e) {
			out = append(out, e)

			continue
		}

		b.ring[(b.head+kept)&(len(b.ring)-1)] = e
		kept++
	}

	for i := kept; i < b.n; i++ {
		b.ring[(b.head+i)&(len(b.ring)-1)] = entry{}
	}

	b.n = kept

	return out
}

// each calls f with every waiting entry, oldest first, until it returns false.
func (b *inbox) each(f func(*entry) bool) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for i := range b.n {
		if !f(&b.ring[(b.head+i)&(len(b.ring)-1)]) {
			return
		}
	}
}

// size returns how many entries wait.
func (b *inbox) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()

	return b.n
}

// drop forgets a lane that waits for a wake, when it stops.
func (b *inbox) drop(l *lane) {
	b.mu.Lock()
	defer b.mu.Unlock()

	b.unlist(l)
}

// unlist takes l off the idle list, if it is there.
func (b *inbox) unlist(l *lane) {
	if !l.idle {
		return
	}

	l.idle = false
	i := slices.Index(b.idle, l)
	b.idle = slices.Delete(b.idle, i, i+1)
}

// rouse takes one lane off the idle list.
func (b *inbox) rouse() *lane {
	k := len(b.idle)
	if k == 0 || b.n == 0 {
		return nil
	}

	l := b.idle[k-1]
	b.idle = b.idle[:k-1]
	l.idle = false

	return l
}

// forget drops k entries from the front without holding on to their messages.
func (b *inbox) forget(k int) {
	end := min(b.head+k, len(b.ring))
	clear(b.ring[b.head:end])
	clear(b.ring[:b.head+k-end])
	b.head = (b.head + k) & (len(b.ring) - 1)
	b.n -= k
}

func (b *inbox) grow(more int) {
	size := len(b.ring)
	for size < b.n+more {
		size *= 2
	}

	if size == len(b.ring) {
		return
	}

	ring := make([]entry, size)
	first := copy(ring, b.ring[b.head:min(b.head+b.n, len(b.ring))])
	copy(ring[first:], b.ring[:b.n-first])
	b.ring, b.head = ring, 0
}

// shrink drops a large empty ring, so that one flood is not held for ever.
func (b *inbox) shrink() {
	const keep = 1 << 14

	if len(b.ring) > keep {
		b.ring = make([]entry, inboxMin)
	}

	b.head = 0
}
