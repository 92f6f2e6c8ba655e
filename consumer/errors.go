package consumer

import (
	"errors"
	"fmt"
	"strings"

	"github.com/millrace/millrace/pipeline"
)

// Errors of a membership.
var (
	// ErrNoCheckpoint is returned by Stored when the group has stored nothing for the queue.
	ErrNoCheckpoint = errors.New("consumer: no checkpoint stored")
	// ErrNotOwner is returned when a lease has ended: the queue belongs to someone else or is on its way there.
	ErrNotOwner = errors.New("consumer: not the owner of the queue")
	// ErrReset is an [ErrNotOwner] that says why: somebody has set the group's offset, which counts from then on, and what the
	// lease has not committed before does not count any more.
	ErrReset = fmt.Errorf("%w: somebody has set the group's offset", ErrNotOwner)
	// ErrLeft is returned by every call after Leave.
	ErrLeft = errors.New("consumer: the member has left its group")
	// ErrClosed is returned by every call after the broker was closed.
	ErrClosed = errors.New("consumer: the broker is closed")
)

// UnknownTopicError is returned by Join and Publish for a topic that does not exist.
type UnknownTopicError struct {
	Topic string
	// Known are the topics that exist, sorted; nil when the broker cannot list them.
	Known []string
}

var _ error = (*UnknownTopicError)(nil)

// maxTold is how many topics an error lists: a cluster may have thousands.
const maxTold = 30

// Error names the topic, the ones that there are, and how to create it.
func (e *UnknownTopicError) Error() string {
	told, more := e.Known, ""
	if n := len(told) - maxTold; n > 0 {
		told, more = told[:maxTold], fmt.Sprintf(" and %d others", n)
	}

	text := fmt.Sprintf("consumer: no topic %q", e.Topic)
	if len(told) > 0 {
		text += "; there are: " + strings.Join(told, ", ") + more
	}

	return text + "; mend the name, or create it: millrace topics create " + e.Topic
}

// OutOfRangeError is returned by Pull for an offset outside of what the queue holds: First <= o <= End is legal.
type OutOfRangeError struct {
	Queue            pipeline.Queue
	From, First, End pipeline.Offset
}

var _ error = (*OutOfRangeError)(nil)

// Error names the queue, the offset and the legal range.
func (e *OutOfRangeError) Error() string {
	return fmt.Sprintf("consumer: %s: offset %d is outside of what the queue holds, %d to %d",
		e.Queue, e.From, e.First, e.End)
}

// DamagedError is returned by Pull when the record at Offset is there but cannot be read. Seeking behind it skips it.
type DamagedError struct {
	Queue  pipeline.Queue
	Offset pipeline.Offset
	Err    error
}

var _ error = (*DamagedError)(nil)

// Error names the queue, the offset and the damage.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("consumer: %s: the record at offset %d is damaged: %v", e.Queue, e.Offset, e.Err)
}

// Unwrap returns the damage.
func (e *DamagedError) Unwrap() error { return e.Err }
