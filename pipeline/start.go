package pipeline

import "time"

// Start is where a consumer group begins in a queue for which nothing is stored. The zero value is [First].
// A stored offset always wins over it.
type Start struct {
	kind startKind
	at   time.Time
}

type startKind uint8

const (
	startFirst startKind = iota
	startLast
	startTime
)

// The fixed start positions.
//
//nolint:gochecknoglobals // immutable values
var (
	// First starts at the first message that the broker still has.
	First = Start{kind: startFirst}
	// Last starts at the end of the queue: only messages published from then on.
	Last = Start{kind: startLast}
)

// StartAt starts at the first message published at t or later.
func StartAt(t time.Time) Start { return Start{kind: startTime, at: t} }

// IsFirst reports whether s is First.
func (s Start) IsFirst() bool { return s.kind == startFirst }

// IsLast reports whether s is Last.
func (s Start) IsLast() bool { return s.kind == startLast }

// Time returns the time of [StartAt].
func (s Start) Time() (time.Time, bool) { return s.at, s.kind == startTime }

// String returns first, last or the time in RFC 3339.
func (s Start) String() string {
	switch s.kind {
	case startLast:
		return "last"
	case startTime:
		return s.at.Format(time.RFC3339Nano)
	case startFirst:
		return "first"
	default:
		return "unknown"
	}
}
