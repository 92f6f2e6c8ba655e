package actors

import (
	"sync"

	"github.com/millrace/millrace/pipeline"
)

// report is what a lane tells the tracker at the end of a turn: which source messages are finished. Lanes take reports from
// a pool and the tracker gives them back.
type report struct {
	internal

	runs []doneRun
	// ended are the ones with a failure, which may be a cancellation.
	ended []*tally
}

// doneRun is the tallies with index from <= i < to of a block, all completed.
type doneRun struct {
	block    *block
	from, to int32
	// filtered: nothing of them reached a sink.
	filtered bool
}

//nolint:gochecknoglobals // a pool is shared by its nature
var reports = sync.Pool{New: func() any { return &report{} }}

func newReport() *report {
	r, _ := reports.Get().(*report)

	return r
}

func (r *report) empty() bool { return len(r.runs) == 0 && len(r.ended) == 0 }

func (r *report) release() {
	clear(r.runs)
	clear(r.ended)
	r.runs, r.ended = r.runs[:0], r.ended[:0]
	reports.Put(r)
}

// finish gives back one count of t; wrote says that it ended in a sink. What t stood for is in the report when that was
// the last count.
func (r *report) finish(t *tally, wrote bool) {
	flags := t.flags.Load()
	if wrote && flags&tallyForked != 0 {
		t.flags.Or(tallyWrote)
	}

	if !t.last() {
		return
	}

	if f := t.failure.Load(); f != nil {
		r.end(t, f)

		return
	}

	wrote = wrote || t.flags.Load()&tallyWrote != 0

	if t.block == nil {
		for _, parent := range t.joint {
			r.finish(parent, wrote)
		}

		return
	}

	if n := len(r.runs); n > 0 {
		last := &r.runs[n-1]
		if last.block == t.block && last.to == t.index && last.filtered == !wrote {
			last.to++

			return
		}
	}

	r.runs = append(r.runs, doneRun{block: t.block, from: t.index, to: t.index + 1, filtered: !wrote})
}

func (r *report) end(t *tally, f *failure) {
	if t.block != nil {
		r.ended = append(r.ended, t)

		return
	}

	// The tries in place are those of the joint message, the deliveries those of each parent.
	tries := f.attempts - t.record().delivery

	for _, parent := range t.joint {
		parent.fail(&failure{err: f.err, attempts: parent.record().delivery + tries, cancelled: f.cancelled})
		r.finish(parent, false)
	}
}

// fail records a failure on t and gives one count back.
func (r *report) fail(t *tally, err *pipeline.StageError, attempts int) {
	t.fail(&failure{err: err, attempts: attempts})
	r.finish(t, false)
}

// giveUp marks t as unfinished, which is no failure, and gives one count back.
func (r *report) giveUp(t *tally) {
	t.fail(&failure{cancelled: true})
	r.finish(t, false)
}
