package actors

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// blockSize is the most messages of one block. Rule 1 of the speed rules: a hop is shared by up to 256 messages.
const blockSize = 256

// tally counts what is still to be done for one source message: the message itself and all that was derived from it.
// Whoever brings it to zero reports it, once. The message of a gather stage has a tally of its own, a joint one, which
// stands for all the tallies of its batch.
type tally struct {
	left    atomic.Int32
	index   int32
	block   *block
	failure atomic.Pointer[failure]
	// flags say what happened to descendants on the way; see tallyForked.
	flags atomic.Uint32
	joint []*tally
}

const (
	// tallyForked: there was more than one descendant at a time.
	tallyForked uint32 = 1 << iota
	// tallyWrote: a descendant of a forked message reached a sink.
	tallyWrote
)

// failure is why a source message did not complete.
type failure struct {
	err *pipeline.StageError
	// attempts is how often the message was tried, the deliveries by the broker and the retries in place together.
	attempts int
	// cancelled: the job was stopping; the message is neither failed nor finished.
	cancelled bool
}

// add counts n more descendants. It must be called while the caller holds one itself.
func (t *tally) add(n int) {
	if n != 0 {
		t.flags.Or(tallyForked)
		t.touch()
		t.left.Add(int32(n))
	}
}

// fail records the first failure; later ones are its company.
func (t *tally) fail(f *failure) {
	t.touch()
	t.failure.CompareAndSwap(nil, f)
}

// touch notes that the tally is not as new any more and must be made so before its next use.
func (t *tally) touch() {
	if t.block != nil && !t.block.touched.Load() {
		t.block.touched.Store(true)
	}
}

// last gives one count back and says whether it was the last. A tally that one holder has kept for itself all the way
// stays at one, ready for its next use.
func (t *tally) last() bool {
	if t.left.Load() == 1 {
		return true
	}

	if t.left.Add(-1) > 0 {
		return false
	}

	t.left.Store(1)

	return true
}

// source returns the tally of a source message: t itself, or the first one that a joint tally stands for.
func (t *tally) source() *tally {
	for t.block == nil {
		t = t.joint[0]
	}

	return t
}

// slot returns the ownership under which the source was pulled.
func (t *tally) slot() *slot { return t.source().block.slot }

// wanted says whether any message that t stands for is of a queue that is still owned: then it must not be given up.
func (t *tally) wanted() bool {
	if t.block != nil {
		return t.block.slot.is(slotOwned)
	}

	return slices.ContainsFunc(t.joint, (*tally).wanted)
}

// stale says that every source has been given up: whatever is done for the tally now is dropped.
func (t *tally) stale() bool {
	if t.block != nil {
		return t.block.slot.is(slotGone)
	}

	return !slices.ContainsFunc(t.joint, func(p *tally) bool { return !p.stale() })
}

// record returns the tracker's record of the source.
func (t *tally) record() *record {
	s := t.source()

	return &s.block.records[s.index]
}

// newJoint returns a tally for what a gather stage made of a batch.
func newJoint(parents []*tally) *tally {
	t := &tally{joint: parents}
	t.left.Store(1)

	return t
}

// record is what the tracker must know of a source message when the message itself has been changed by the stages.
type record struct {
	id, key  string
	offset   pipeline.Offset
	delivery int
	// end is the size of the block's messages up to this one, itself included.
	end int64
}

// block is a pulled batch: up to blockSize messages of one queue with their tallies. The tracker owns it, from admit until
// every tally is done; then it goes back to the pool. The fields of its messages are written before the block is sent to
// the tracker and not changed afterwards.
type block struct {
	slot    *slot
	n       int
	records [blockSize]record
	tallies [blockSize]tally
	// aims are the channels that the messages are for, by index in the plan, -1 for any; nil when all are for any.
	aims []int
	// dense: the offsets of the block have no gaps.
	dense bool
	// open is how many tallies are not done. Owned by the tracker.
	open int
	// touched: there are tallies with a failure or with flags.
	touched atomic.Bool
	// spoiled: a fenced lane may still hold pointers into the block, so it must not be used again. Owned by the tracker.
	spoiled bool
}

//nolint:gochecknoglobals // a pool is shared by its nature
var blocks = sync.Pool{New: func() any {
	b := &block{}
	for i := range b.tallies {
		b.tallies[i].index = int32(i)
		b.tallies[i].block = b
		b.tallies[i].left.Store(1)
	}

	return b
}}

// newBlock takes a block from the pool and fills it.
func newBlock(s *slot, messages []*pipeline.Message) *block {
	b, _ := blocks.Get().(*block)
	b.slot, b.n, b.open, b.spoiled, b.aims = s, len(messages), len(messages), false, nil

	var end int64

	for i, m := range messages {
		end += int64(m.Size())
		r := &b.records[i]
		r.id, r.key, r.offset, r.delivery, r.end = m.ID, m.Key, m.Origin.Offset, m.Origin.Delivery, end
	}

	first, last := b.records[0].offset, b.records[b.n-1].offset
	b.dense = int64(last-first) == int64(b.n-1)

	return b
}

// release gives the block back when nothing points into it any more. The records keep their last ids and keys until the
// next use or the next collection but one, when the pool lets go of what is not used; clearing them costs 2 ns a message.
func (b *block) release() {
	if b.spoiled {
		return
	}

	if b.touched.Load() {
		b.touched.Store(false)

		for i := range b.n {
			b.tallies[i].failure.Store(nil)
			b.tallies[i].flags.Store(0)
		}
	}

	b.slot = nil
	poison(b)
	blocks.Put(b)
}

// bytes returns the size of the messages from index `from` to before index `to`.
func (b *block) bytes(from, to int) int64 {
	sum := b.records[to-1].end
	if from > 0 {
		sum -= b.records[from-1].end
	}

	return sum
}

// runs calls f with each run of contiguous offsets between two indexes of the block.
func (b *block) runs(from, to int, f func(r consumer.Run, bytes int64)) {
	for from < to {
		end := to
		if !b.dense {
			end = from + 1
			for end < to && b.records[end].offset == b.records[end-1].offset+1 {
				end++
			}
		}

		first := b.records[from].offset
		f(consumer.Run{From: first, To: first + pipeline.Offset(end-from)}, b.bytes(from, end))
		from = end
	}
}

// slotState is how far the ownership of a queue has come.
type slotState uint32

const (
	// slotOwned: the queue is pulled and worked on.
	slotOwned slotState = iota
	// slotClosing: no more pulls; what runs may end, what has not started is dropped.
	slotClosing
	// slotGone: given up; whatever still comes for it is counted and dropped.
	slotGone
)

// slot is one ownership of one queue by this job, shared by its pull-queue actor, the tracker and the lanes. A queue that
// is revoked and assigned again, or that is sought, gets a new slot.
type slot struct {
	lease consumer.Lease
	state atomic.Uint32
	// puller is the queue's pull-queue actor; set before the slot is shared.
	puller *actor.PID
	pull   pullStatus
	// tracked is the tracker's part; only the tracker follows this pointer.
	tracked *tracked
}

func (s *slot) is(state slotState) bool { return slotState(s.state.Load()) == state }

func (s *slot) become(state slotState) { s.state.Store(uint32(state)) }
