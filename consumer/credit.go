package consumer

import (
	"fmt"

	"github.com/millrace/millrace/pipeline"
)

// The defaults of Limits, and the most that a span may be: a span of MaxSpan costs 8 MiB a queue.
const (
	DefaultMessages = 4096
	DefaultBytes    = 64 << 20
	DefaultSpan     = 1 << 16
	MaxSpan         = 1 << 26
)

// Limits bound what may be in flight of one queue.
type Limits struct {
	// Messages is the most messages; 0 means 4096.
	Messages int
	// Bytes is the most bytes, by Message.Size; 0 means 64 MiB. A message that is bigger alone goes alone.
	Bytes int64
	// Span is the most offsets from the lowest one in flight to the highest one, both included; 0 means 65,536. It bounds
	// how far the queue runs ahead of one message that does not get finished.
	Span int64
}

// OrDefaults returns l with the defaults in place of zeros.
func (l Limits) OrDefaults() Limits {
	if l.Messages == 0 {
		l.Messages = DefaultMessages
	}

	if l.Bytes == 0 {
		l.Bytes = DefaultBytes
	}

	if l.Span == 0 {
		l.Span = DefaultSpan
	}

	return l
}

// LimitError is returned by [Limits.Validate].
type LimitError struct {
	// Name is the field that is wrong: Messages, Bytes or Span.
	Name string
	// Value is what it holds, Max the most that it may hold; the least is 0.
	Value, Max int64
}

var _ error = (*LimitError)(nil)

// Error names the limit and its legal range.
func (e *LimitError) Error() string {
	return fmt.Sprintf("consumer: limit %s is %d; it must be from 0 (the default) to %d", e.Name, e.Value, e.Max)
}

// Validate reports a limit that is negative, or a span above [MaxSpan], as a [*LimitError].
func (l Limits) Validate() error {
	const most = 1<<63 - 1

	switch {
	case l.Messages < 0:
		return &LimitError{Name: "Messages", Value: int64(l.Messages), Max: most}
	case l.Bytes < 0:
		return &LimitError{Name: "Bytes", Value: l.Bytes, Max: most}
	case l.Span < 0 || l.Span > MaxSpan:
		return &LimitError{Name: "Span", Value: l.Span, Max: MaxSpan}
	}

	return nil
}

// Credit is the puller's mirror of one queue's window: how much more may be admitted. It lags behind the window on the
// safe side: what it counts as in flight is never less than what is. One goroutine at a time may use it.
type Credit struct {
	limits Limits
	count  int
	bytes  int64
	low    pipeline.Offset
}

// NewCredit returns the full credit of a queue whose window's Min is low. Zeros in the limits mean the defaults.
func NewCredit(l Limits, low pipeline.Offset) Credit {
	return Credit{limits: l.OrDefaults(), low: low}
}

// Room returns how much may be pulled now. Messages is 0 when nothing may.
func (c *Credit) Room() Limit {
	room := Limit{Messages: c.limits.Messages - c.count, Bytes: c.limits.Bytes - c.bytes}
	if room.Messages <= 0 || room.Bytes <= 0 {
		return Limit{}
	}

	return room
}

// Fits reports whether the message at offset o keeps count, bytes and span inside their limits. Whatever its size and
// offset, a message fits when nothing is in flight.
func (c *Credit) Fits(o pipeline.Offset, bytes int64) bool {
	if c.count == 0 {
		return true
	}

	return c.count < c.limits.Messages && c.bytes+bytes <= c.limits.Bytes && int64(o-c.low) < c.limits.Span
}

// Short names the limit that keeps the message at offset o from being admitted: "messages", "bytes" or "span"; empty when
// it fits.
func (c *Credit) Short(o pipeline.Offset, bytes int64) string {
	switch {
	case c.count == 0:
		return ""
	case c.count >= c.limits.Messages:
		return "messages"
	case c.bytes >= c.limits.Bytes || c.bytes+bytes > c.limits.Bytes:
		return "bytes"
	case int64(o-c.low) >= c.limits.Span:
		return "span"
	default:
		return ""
	}
}

// Take spends credit on messages that are on their way into the window.
func (c *Credit) Take(n int, bytes int64) {
	c.count += n
	c.bytes += bytes
}

// Give takes back the credit of finished messages and the window's present Min.
func (c *Credit) Give(n int, bytes int64, low pipeline.Offset) {
	c.count -= n
	c.bytes -= bytes
	c.low = max(c.low, low)
}

// Refund collects what the window's owner owes a [Credit], so that it is given back in portions and not message by
// message. The zero value owes nothing to a queue that starts at offset 0.
type Refund struct {
	// Messages and Bytes are finished and not given back yet.
	Messages int
	Bytes    int64
	// Min is the window's Min at the last Add.
	Min pipeline.Offset
	// given is the Min that was given back last.
	given pipeline.Offset
}

// NewRefund returns a Refund of a queue whose window's Min is low, and known to the Credit.
func NewRefund(low pipeline.Offset) Refund { return Refund{Min: low, given: low} }

// Add records finished messages and the window's present Min. It may be called with no messages when only Min moved.
func (r *Refund) Add(n int, bytes int64, low pipeline.Offset) {
	r.Messages += n
	r.Bytes += bytes
	r.Min = low
}

// Due reports whether it is time to give back: when a quarter of any limit has come together, and when anything at all
// has and nothing is in flight any more, so that no queue waits for credit that nobody is going to give.
func (r *Refund) Due(l Limits, inFlight int) bool {
	moved := int64(r.Min - r.given)
	if r.Messages == 0 && moved == 0 {
		return false
	}

	const portion = 4

	l = l.OrDefaults()

	return inFlight == 0 ||
		r.Messages >= max(1, l.Messages/portion) || r.Bytes >= max(1, l.Bytes/portion) || moved >= max(1, l.Span/portion)
}

// Take returns what is owed and owes nothing from then on.
func (r *Refund) Take() (n int, bytes int64, low pipeline.Offset) {
	n, bytes, low = r.Messages, r.Bytes, r.Min
	*r = NewRefund(low)

	return n, bytes, low
}
