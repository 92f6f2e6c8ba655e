// Package throttle holds messages up so that they pass at a rate.
package throttle

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/expression"
)

// Limit is the rate that the lanes of a stage share, or one for each value of an expression. It is safe for concurrent use.
type Limit struct {
	perMessage, perByte float64 // seconds that one takes; 0 is no limit
	burst               time.Duration
	clock               plugins.Clock

	per  expression.Expression // zero where there is one rate
	most int                   // rates

	mu    sync.Mutex // guards what is below
	rates map[digest]*list.Element
	order list.List // of *rate, the one used last in front
}

// digest stands for a value of Per. It is long enough that two values with the same digest do not occur.
type digest [16]byte

// rate is how far one rate is booked.
type rate struct {
	of digest
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

	l := &Limit{burst: time.Duration(o.Burst), clock: clock, per: o.Per, most: o.Keys, rates: make(map[digest]*list.Element)}

	if l.burst == 0 {
		l.burst = time.Second
	}

	if l.most == 0 {
		l.most = 100_000
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
type booking struct {
	of              digest
	messages, bytes time.Duration
	// forgotten: another rate had to be, while it was still booked.
	forgotten bool
}

// digestOf returns the digest of what the messages of a rate agree in.
func (l *Limit) digestOf(m *pipeline.Message, scope *expression.Scope) (digest, error) {
	if l.per.IsZero() {
		return digest{}, nil
	}

	scope.Reset(m)

	v, err := l.per.Eval(scope)
	if err != nil {
		return digest{}, fmt.Errorf("%s: %w", l.per.Excerpt(err), err)
	}

	text, err := v.Text()
	if err != nil {
		return digest{}, fmt.Errorf("%s: %w", l.per.Excerpt(err), err)
	}

	sum := sha256.Sum256([]byte(text))

	return digest(sum[:len(digest{})]), nil
}

// book takes the turn of a message and returns how long it has to wait for it from now on.
func (l *Limit) book(of digest, m *pipeline.Message) (b booking, now time.Time, wait time.Duration) {
	b = booking{of: of, messages: seconds(l.perMessage), bytes: seconds(l.perByte * float64(m.Size()))}
	now = l.clock.Now()

	l.mu.Lock()
	defer l.mu.Unlock()

	r, forgotten := l.rate(of, now)
	b.forgotten = forgotten

	wait = max(l.turn(&r.messages, b.messages, now), l.turn(&r.bytes, b.bytes, now))

	return b, now, wait
}

// rate returns a rate, which takes the place of the one used longest ago when there is no more room. Forgotten tells that this
// one was still booked. The caller holds the lock.
func (l *Limit) rate(of digest, now time.Time) (r *rate, forgotten bool) {
	if at, ok := l.rates[of]; ok {
		l.order.MoveToFront(at)
		r, _ = at.Value.(*rate)

		return r, false
	}

	if len(l.rates) >= l.most {
		last, _ := l.order.Remove(l.order.Back()).(*rate)
		delete(l.rates, last.of)

		forgotten = last.messages.After(l.free(now, seconds(l.perMessage))) || last.bytes.After(l.free(now, 0))
	}

	r = &rate{of: of}
	l.rates[of] = l.order.PushFront(r)

	return r, forgotten
}

// turn books a time span and returns how long it is until it begins. What came before it is not free, but for a burst.
func (l *Limit) turn(booked *time.Time, span time.Duration, now time.Time) time.Duration {
	if span == 0 {
		return 0
	}

	if free := l.free(now, span); booked.Before(free) {
		*booked = free
	}

	wait := booked.Sub(now)
	*booked = booked.Add(span)

	return wait
}

// free is up to when a rate that has rested is booked, for a message that takes a span: one message always fits, however long it
// takes.
func (l *Limit) free(now time.Time, span time.Duration) time.Time {
	return now.Add(-max(l.burst-span, 0))
}

// giveBack returns the turn of a message that did not pass.
func (l *Limit) giveBack(b booking) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if at, ok := l.rates[b.of]; ok {
		r, _ := at.Value.(*rate)
		r.messages, r.bytes = r.messages.Add(-b.messages), r.bytes.Add(-b.bytes)
	}
}

// seconds is at most a year, so that no sum of times overflows.
func seconds(s float64) time.Duration {
	const year = 365 * 24 * 3600

	return time.Duration(min(s, year) * float64(time.Second))
}
