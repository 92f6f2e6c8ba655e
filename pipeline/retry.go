package pipeline

import "time"

// RetryPolicy says how often and how soon a failing message is attempted again, and where it goes in the end.
type RetryPolicy struct {
	// Attempts is the most deliveries of one message, the first included; 0 means 16. After the last one fails the
	// message goes to the dead letters.
	Attempts int
	// Delays is the ladder: the n-th retry waits Delays[n-1], further ones wait the last entry. Empty means
	// 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h, RocketMQ's own ladder for retries.
	Delays []time.Duration
	// DeadLetterTopic is where messages go that failed for good; empty means the broker's own dead-letter topic of the
	// group ("%DLQ%" + group).
	DeadLetterTopic string
}

const defaultAttempts = 16

// defaultDelays are the delay levels 3 to 17 of a RocketMQ broker, which its consumers climb for retries.
//
//nolint:gochecknoglobals // a constant table
var defaultDelays = []time.Duration{
	10 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 3 * time.Minute, 4 * time.Minute,
	5 * time.Minute, 6 * time.Minute, 7 * time.Minute, 8 * time.Minute, 9 * time.Minute, 10 * time.Minute,
	20 * time.Minute, 30 * time.Minute, time.Hour,
}

// Limit returns Attempts or its default.
func (p RetryPolicy) Limit() int {
	if p.Attempts == 0 {
		return defaultAttempts
	}

	return p.Attempts
}

// Decide says what becomes of a message whose attempt number delivery (1 for the first) ended with err.
// It is the only place where this is decided. A nil err is an Ack.
func (p RetryPolicy) Decide(delivery int, err error) Outcome {
	switch {
	case err == nil:
		return Outcome{Verdict: Ack}
	case IsRejected(err), delivery >= p.Limit():
		return Outcome{Verdict: DeadLetter, Err: err}
	}

	if delay, ok := RetryDelay(err); ok {
		return Outcome{Verdict: Retry, Delay: max(delay, 0), Err: err}
	}

	delays := p.ladder()

	return Outcome{Verdict: Retry, Delay: delays[min(max(delivery, 1), len(delays))-1], Err: err}
}

// ladder returns Delays or its default.
func (p RetryPolicy) ladder() []time.Duration {
	if len(p.Delays) == 0 {
		return defaultDelays
	}

	return p.Delays
}
