package consumer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/millrace/millrace/pipeline"
)

// ErrBadCheckpoint is returned by [Checkpoint.Validate].
var ErrBadCheckpoint = errors.New("consumer: not a checkpoint")

// Validate reports whether c keeps the rules of its fields; use it on everything that was read from outside. The error
// wraps [ErrBadCheckpoint] and names the first rule that is broken.
func (c Checkpoint) Validate() error {
	if c.Next < 0 {
		return fmt.Errorf("%w: next is %d, below 0", ErrBadCheckpoint, c.Next)
	}

	end := c.Next
	for _, r := range c.Done {
		if r.To <= r.From {
			return fmt.Errorf("%w: the run %d to %d is empty", ErrBadCheckpoint, r.From, r.To)
		}

		if r.From <= end {
			return fmt.Errorf("%w: the run %d to %d touches what ends at %d", ErrBadCheckpoint, r.From, r.To, end)
		}

		end = r.To
	}

	return nil
}

// Finished reports whether c says that the offset is finished.
func (c Checkpoint) Finished(o pipeline.Offset) bool {
	return o < c.Next || ContainsRun(c.Done, o)
}

// Includes reports whether c calls everything finished that other does.
func (c Checkpoint) Includes(other Checkpoint) bool {
	return c.Next >= other.Next && !slices.ContainsFunc(other.Done, func(r Run) bool {
		from := max(r.From, c.Next)

		return from < r.To && !slices.ContainsFunc(c.Done, func(o Run) bool { return o.From <= from && r.To <= o.To })
	})
}

// With returns c with more finished offsets: Next moves over everything that is finished without a break. The runs may
// come in any order, touch and overlap; neither they nor c are changed or kept.
func (c Checkpoint) With(done ...Run) Checkpoint {
	runs := JoinRuns(slices.Concat(c.Done, done))
	next := c.Next

	for len(runs) > 0 && runs[0].From <= next {
		next = max(next, runs[0].To)
		runs = runs[1:]
	}

	return Checkpoint{Next: next, Done: runs}
}

// JoinRuns returns the offsets of runs as sorted runs that neither touch nor overlap, as [Checkpoint].Done wants them.
// Empty runs are left out. The argument's array is reused and its content is lost.
func JoinRuns(runs []Run) []Run {
	slices.SortFunc(runs, func(a, b Run) int { return cmp.Compare(a.From, b.From) })

	joined := runs[:0]
	for _, r := range runs {
		switch last := len(joined) - 1; {
		case r.To <= r.From:
		case last >= 0 && r.From <= joined[last].To:
			joined[last].To = max(joined[last].To, r.To)
		default:
			joined = append(joined, r)
		}
	}

	return joined
}

// ContainsRun reports whether one of the runs contains the offset. The runs must be sorted and disjoint.
func ContainsRun(runs []Run, o pipeline.Offset) bool {
	i, _ := slices.BinarySearchFunc(runs, o, func(r Run, o pipeline.Offset) int {
		if r.To <= o {
			return -1
		}

		return 1
	})

	return i < len(runs) && runs[i].From <= o
}
