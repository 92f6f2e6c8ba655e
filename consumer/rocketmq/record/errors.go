package record

import (
	"errors"
	"fmt"
)

// ErrTooLarge is returned for a body that becomes larger than Limits.Body, and for what no record can hold.
var ErrTooLarge = errors.New("record: too large")

// DamagedError is returned for bytes that are no record, and for a record whose body cannot be read.
type DamagedError struct {
	// Offset is the record's offset in its queue, or -1 when not even that can be read.
	Offset int64
	// At is where in the input the record begins.
	At  int
	Err error
}

var _ error = (*DamagedError)(nil)

// Error says where the damage is and what.
func (e *DamagedError) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("record: damaged at byte %d: %v", e.At, e.Err)
	}

	return fmt.Sprintf("record: damaged at byte %d, offset %d: %v", e.At, e.Offset, e.Err)
}

// Unwrap returns the damage.
func (e *DamagedError) Unwrap() error { return e.Err }

// What can be wrong with a record.
var (
	errShort    = errors.New("it is cut off")
	errLength   = errors.New("its lengths do not fit together")
	errMagic    = errors.New("it begins with a mark of no known version")
	errOffset   = errors.New("its offset is negative")
	errHost     = errors.New("its host has a port that there is not")
	errChecksum = errors.New("the checksum of its body is another")
)
