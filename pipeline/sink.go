package pipeline

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Sink is the end of a channel: it stores messages or hands them to another system.
//
// Write returns nil only when every message of the batch is durable by the sink's own standard. To fail some of them it
// returns a [*BatchError]; any other error fails them all. The batch and its messages, their bodies too, must not be
// changed, nor kept after Write has returned. One Sink serves all lanes of its channel: Write must be safe for concurrent
// use. The context ends at the deadline of the batch or when the lane stops; a Write that fails for it returns an error
// that wraps the context's and is not marked by [Reject].
type Sink interface {
	Write(ctx context.Context, batch []*Message) error
}

// SinkFunc is a function as a [Sink].
type SinkFunc func(ctx context.Context, batch []*Message) error

var _ Sink = SinkFunc(nil)

// Write calls f.
func (f SinkFunc) Write(ctx context.Context, batch []*Message) error { return f(ctx, batch) }

// Discard is a [Sink] that takes everything and keeps nothing, for channels whose work is done by their stages.
//
//nolint:gochecknoglobals // an immutable value, as io.Discard is
var Discard Sink = discard{}

type discard struct{}

func (discard) Write(context.Context, []*Message) error { return nil }

// BatchError is a partial failure of a batch: the messages that it does not name succeeded.
type BatchError struct {
	// Failed maps an index in the batch to that message's error, which may be marked by [RetryAfter] or [Reject].
	Failed map[int]error
}

var _ error = (*BatchError)(nil)

// Fail records that the message at index i failed with err; it makes the map when there is none. A nil err is no
// failure and records nothing, so the result of a call can be passed as it is.
func (e *BatchError) Fail(i int, err error) {
	if err == nil {
		return
	}

	if e.Failed == nil {
		e.Failed = make(map[int]error)
	}

	e.Failed[i] = err
}

// Err returns e, or nil when nothing failed: write `return failures.Err()` at the end of a Write.
func (e *BatchError) Err() error {
	if len(e.Failed) == 0 {
		return nil
	}

	return e
}

// Error names how many messages failed and the first few reasons.
func (e *BatchError) Error() string {
	const shown = 3

	var b strings.Builder

	fmt.Fprintf(&b, "pipeline: %d of the batch failed", len(e.Failed))

	for n, i := range slices.Sorted(maps.Keys(e.Failed)) {
		if n == shown {
			b.WriteString("; …")

			break
		}

		fmt.Fprintf(&b, "; [%d] %v", i, e.Failed[i])
	}

	return b.String()
}
