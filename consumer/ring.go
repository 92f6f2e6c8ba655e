package consumer

import (
	"math/bits"

	"github.com/millrace/millrace/pipeline"
)

// word returns the ring word that holds the offset's bit, and the bit's place in it.
func (w *Window) word(o pipeline.Offset) (*uint64, uint) {
	i := uint64(o) & uint64(len(w.ring)*wordBits-1)

	return &w.ring[i/wordBits], uint(i % wordBits)
}

// mask returns n ones (at most a word) from bit place at on, those that fit into the word, and how many they are.
func mask(at uint, n int64) (uint64, int64) {
	n = min(n, int64(wordBits-at))

	return ^uint64(0) >> (wordBits - uint(n)) << at, n
}

func (w *Window) set(r Run) {
	for r.From < r.To {
		word, at := w.word(r.From)
		ones, n := mask(at, r.Len())
		*word |= ones
		r.From += pipeline.Offset(n)
	}
}

func (w *Window) clear(r Run) {
	for r.From < r.To {
		word, at := w.word(r.From)
		ones, n := mask(at, r.Len())
		*word &^= ones
		r.From += pipeline.Offset(n)
	}
}

func (w *Window) allSet(r Run) bool {
	for r.From < r.To {
		word, at := w.word(r.From)
		ones, n := mask(at, r.Len())

		if *word&ones != ones {
			return false
		}

		r.From += pipeline.Offset(n)
	}

	return true
}

// find returns the first offset at or above from whose bit, flipped by flip (no bits or all bits), is 1: with no bits
// the first in flight, with all bits the first that is not. It never looks past one round of the ring.
func (w *Window) find(from pipeline.Offset, flip uint64) pipeline.Offset {
	end := from + pipeline.Offset(len(w.ring)*wordBits)
	for from < end {
		word, at := w.word(from)
		if found := (*word ^ flip) >> at; found != 0 {
			return min(end, from+pipeline.Offset(bits.TrailingZeros64(found)))
		}

		from += pipeline.Offset(wordBits - at)
	}

	return end
}
