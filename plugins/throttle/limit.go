// Package throttle holds messages up so that they pass at a rate.
package throttle

import (
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// Limit is the rate that the lanes of a stage share. It is safe for concurrent use.
type Limit struct {
	perMessage, perByte float64 // seconds that one takes; 0 is no limit
	burst               time.Duration
	clock               plugins.Clock

	mu sync.Mutex // guards what is below
	// messages and bytes are when all that has passed would have passed at an even rate. What is booked in advance is waited
	// for, what is left of the last burst is free.
	messages, bytes time.Time
}

// New returns a limit that nothing has passed yet. A nil clock is the real one.
func New(o Options, clock plugins.Clock) (*Limit, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("throttle: %w", err)
	}

	if clock == nil {
		clock = plugins.RealClock{}
	}

	l := &Limit{burst: time.Duration(o.Burst), clock: clock}

	if l.burst == 0 {
		l.burst = time.Second
	}

	if o.Messages > 0 {
		l.perMessage = 1 / o.Messages
	}

	if o.Bytes > 0 {
		l.perByte = 1 / float64(o.Bytes)
	}

	return l, nil
}

// booking is the time that a message takes of each rate.
type booking struct{ messages, bytes time.Duration }

// book takes the turn of a message and returns how long it has to wait for it from now on.
func (l *Limit) book(m *pipeline.Message) (b booking, now time.Time, wait time.Duration) {
	b = booking{messages: seconds(l.perMessage), bytes: seconds(l.perByte * float64(m.Size()))}
	now = l.clock.Now()

	l.mu.Lock()
	defer l.mu.Unlock()

	wait = max(turn(&l.messages, b.messages, now, l.burst), turn(&l.bytes, b.bytes, now, l.burst))

	return b, now, wait
}

// turn books a time span and returns how long it is until it begins. What came before it is not free, but for a burst.
func turn(booked *time.Time, span time.Duration, now time.Time, burst time.Duration) time.Duration {
	if span == 0 {
		return 0
	}

	// One message always fits, however long it takes.
	if free := now.Add(-max(burst-span, 0)); booked.Before(free) {
		*booked = free
	}

	wait := booked.Sub(now)
	*booked = booked.Add(span)

	return wait
}

// giveBack returns the turn of a message that did not pass.
func (l *Limit) giveBack(b booking) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.messages, l.bytes = l.messages.Add(-b.messages), l.bytes.Add(-b.bytes)
}

// seconds is at most a year, so that no sum of times overflows.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600

	return time.Duration(min(s, year) * float64(time.Second))
}
