package main

import (
	"runtime"
	"sync/atomic"
	"time"
)

// taken is what reading messages took: of the last nine tenths of them, since getting under way is another matter.
type taken struct {
	Seconds float64 `json:"seconds"`
	// CPU is the reader's own processor time in seconds, and Mallocs what it has allocated; 0 where that is not known.
	CPU     float64 `json:"cpu"`
	Mallocs float64 `json:"mallocs"`
}

// meter counts messages and measures what they take. It is safe for concurrent use.
type meter struct {
	from, to int64
	seen     atomic.Int64
	full     chan struct{} // closed when all are there; what is measured is constant then

	began   time.Time
	cpu     time.Duration
	mallocs uint64
	took    taken
}

// newMeter returns a meter of so many messages.
func newMeter(messages int) *meter {
	return &meter{from: skipped(messages), to: int64(messages), full: make(chan struct{})}
}

// skipped is the number of messages that nobody measures.
func skipped(messages int) int64 { return int64(messages / 10) }

// add counts messages.
func (m *meter) add(n int) {
	now := m.seen.Add(int64(n))
	before := now - int64(n)

	if before < m.from && now >= m.from {
		m.mallocs, m.cpu, m.began = mallocs(), processorTime(), time.Now()
	}

	if before < m.to && now >= m.to {
		m.took = taken{
			Seconds: time.Since(m.began).Seconds(), CPU: (processorTime() - m.cpu).Seconds(),
			Mallocs: float64(mallocs() - m.mallocs),
		}
		close(m.full)
	}
}

// mallocs returns how often the process has allocated. Its frame is larger than the stack of a new goroutine, so that in the
// place of its call it would have every stack grow that counts messages.
//
//go:noinline
func mallocs() uint64 {
	var s runtime.MemStats

	runtime.ReadMemStats(&s)

	return s.Mallocs
}
