package actors

import (
	"go.uber.org/zap"
)

// status is what snapshots see of an open breaker; nil when it is not open.
func (b *breaker) status() (s *BreakerStatus, opened int64) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if !b.open() {
		return nil, b.opened
	}

	s = &BreakerStatus{
		Stage: b.ch.stageName(b.stage.Load()), Since: b.ch.clock.at(b.since), Failed: b.failed, Seen: b.seen,
		Tried: b.tried, LastError: b.last.Error(),
	}

	if b.prober == nil && b.next > b.ch.clock.now() {
		s.NextAt = b.ch.clock.at(b.next)
	}

	return s, b.opened
}

// keeps says of a message that could go on by due whether an open breaker keeps it from that.
func (b *breaker) keeps(m *Blocking, due int64) {
	s, _ := b.status()
	if s == nil {
		return
	}

	m.Doing, m.Breaker, m.LastError = WaitsForBreaker, s, s.LastError
	m.Next, m.NextAt = "a message is tried, and all of them go on when it gets through", s.NextAt

	if !s.NextAt.IsZero() {
		if at := b.ch.clock.at(due); at.After(s.NextAt) {
			m.NextAt = at
		}
	}
}

// WaitsForBreaker is what a message does that an open breaker keeps; see [Blocking].
const WaitsForBreaker = "waits for what is down"

// breakerMoved tells the tracker that a breaker has opened or closed.
type breakerMoved struct {
	internal

	event Event
}

// breakerMoved publishes that a channel pauses or goes on.
func (t *tracker) breakerMoved(e Event) {
	switch e := e.(type) {
	case *BreakerOpened:
		t.log.Warn("nearly everything fails at a stage; its channel pauses", zap.String("channel", e.Channel),
			zap.String("stage", e.Stage), zap.Int("failed", e.Failed), zap.Int("of", e.Seen), zap.Duration("retry", e.Retry),
			zap.Error(e.Err))
	case *BreakerClosed:
		t.log.Info("a message has got through; the channel goes on", zap.String("channel", e.Channel),
			zap.String("stage", e.Stage), zap.Duration("paused", e.Open), zap.Int("tried", e.Tried))
	}

	t.publish(e)
}
