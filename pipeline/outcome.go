package pipeline

import (
	"errors"
	"fmt"
	"time"
)

// Verdict is what becomes of a message after an attempt.
type Verdict uint8

// The verdicts. The zero value is Ack.
const (
	// Ack: the message is finished; its offset may be passed.
	Ack Verdict = iota
	// Retry: the message is attempted again after a delay.
	Retry
	// DeadLetter: the message is parked in the dead letters and its offset may be passed.
	DeadLetter
)

// String returns the verdict's name in lower case.
func (v Verdict) String() string {
	switch v {
	case Ack:
		return "ack"
	case Retry:
		return "retry"
	case DeadLetter:
		return "dead letter"
	default:
		return fmt.Sprintf("verdict(%d)", uint8(v))
	}
}

// Outcome is a verdict with its reason. It is computed in one place, [RetryPolicy.Decide].
type Outcome struct {
	Verdict Verdict
	// Delay is how long a Retry waits.
	Delay time.Duration
	// Err is why the attempt failed; nil for Ack.
	Err error
}

// RetryAfter marks err with the instruction "try this again after delay". A short delay is waited for in place, by the
// stage or sink that asked for it, within the deadline of the message; what does not fit goes back to the broker.
// RetryAfter(nil, d) is nil.
func RetryAfter(err error, delay time.Duration) error {
	if err == nil {
		return nil
	}

	return &retryAfterError{err: err, delay: delay}
}

// Reject marks err with the instruction "never try this again": the message goes straight to the dead letters.
// Reject(nil) is nil.
func Reject(err error) error {
	if err == nil {
		return nil
	}

	return &rejectError{err: err}
}

// RetryDelay returns the delay that [RetryAfter] put on err, anywhere in its chain.
func RetryDelay(err error) (time.Duration, bool) {
	if mark, ok := errors.AsType[*retryAfterError](err); ok {
		return mark.delay, true
	}

	return 0, false
}

// IsRejected reports whether [Reject] marked err, anywhere in its chain. A rejection beats a retry mark.
func IsRejected(err error) bool {
	_, ok := errors.AsType[*rejectError](err)

	return ok
}

type retryAfterError struct {
	err   error
	delay time.Duration
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

type rejectError struct{ err error }

func (e *rejectError) Error() string { return e.err.Error() }
func (e *rejectError) Unwrap() error { return e.err }

// StageError is a failure with the place where it happened. Every failure that the runtime reports is one.
type StageError struct {
	// Channel and Stage name the place; Stage is "sink" or "gather" for the end of a channel.
	Channel, Stage string
	// Err is the cause.
	Err error
	// Stack is the stack of a panic; nil for an error that was returned.
	Stack []byte
}

var _ error = (*StageError)(nil)

// Error returns "channel/stage: cause".
func (e *StageError) Error() string { return e.Channel + "/" + e.Stage + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *StageError) Unwrap() error { return e.Err }

// ErrTimeout is the cause of a message's failure when a stage or a sink held it past the channel's time-out.
var ErrTimeout = errors.New("pipeline: past its deadline")

// PanicError is the cause of a message's failure when plugin code panicked.
type PanicError struct {
	// Value is what was passed to panic.
	Value any
}

var _ error = (*PanicError)(nil)

// Error returns "panic: value".
func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the value when it was an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)

	return err
}
