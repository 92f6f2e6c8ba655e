//go:build race || !amd64

package actors

import "sync/atomic"

// word is a number that one goroutine stores and all may look at and swap.
type word struct{ atomic.Uint64 }

// publish stores v: whoever sees it sees what was written before it.
func (w *word) publish(v uint64) { w.Store(v) }
