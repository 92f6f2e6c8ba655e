package pipeline

import (
	"fmt"
	"strings"
)

// JobError is returned by [Compile] for a job that cannot run: all of its mistakes.
type JobError struct {
	// Job is the job's name; it may be empty.
	Job string
	// Mistakes are in the order of the job's fields; what concerns the graph of channels as a whole comes after the
	// channels themselves.
	Mistakes []Mistake
}

var _ error = (*JobError)(nil)

// Error lists the mistakes, one a line when there are several.
func (e *JobError) Error() string {
	if len(e.Mistakes) == 1 {
		return fmt.Sprintf("pipeline: job %q: %s", e.Job, e.Mistakes[0])
	}

	var b strings.Builder

	fmt.Fprintf(&b, "pipeline: job %q has %d mistakes:", e.Job, len(e.Mistakes))

	for _, m := range e.Mistakes {
		b.WriteString("\n\t" + m.String())
	}

	return b.String()
}

// Mistake is one thing that is wrong with a job.
type Mistake struct {
	// Path leads to it, in the words of the job's fields: channels[2] "archive".routes[0].to.
	Path string
	// Problem says what is wrong, Cure what to do about it.
	Problem, Cure string
}

// String returns "path: problem; cure".
func (m Mistake) String() string { return m.Path + ": " + m.Problem + "; " + m.Cure }
