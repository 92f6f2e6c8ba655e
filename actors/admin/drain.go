package admin

import (
	"context"
	"net/http"
	"time"

	"github.com/millrace/millrace/actors"
)

// Drained is the answer to a drain.
type Drained struct {
	// Done says that the drain has begun.
	Done bool `json:"done"`
	// Stopped says that it has ended, and the rest how.
	Stopped bool `json:"stopped,omitempty"`
	// Clean says that everything that was admitted is finished and committed, Unfinished how many messages are not finished; they
	// come again.
	Clean      bool `json:"clean,omitempty"`
	Unfinished int  `json:"unfinished,omitempty"`
	// Error is why the job has stopped by itself; empty where it was asked to.
	Error string `json:"error,omitempty"`
	// Took is how long it lasted.
	Took time.Duration `json:"tookNanoseconds,omitempty"`
}

// longestWait is how long an answer waits for the end of a drain, which is less than a request may take.
const longestWait = 20 * time.Second

// drain begins the end of a job, and waits for it as long as it is asked to.
func (h *handler) drain(r *http.Request) (any, error) {
	drained := Drained{Done: true}

	_, err := h.change(r, false, func(ctx context.Context, job *actors.Running, c Change) error {
		budget, err := timeOf("budget", c.Budget)
		if err != nil {
			return err
		}

		wait, err := timeOf("wait", c.Wait)
		if err != nil {
			return err
		}

		if wait > longestWait {
			return failf(statusBad, "the wait %q is above %v; ask again when it is over", c.Wait, longestWait)
		}

		go job.Drain(budget)

		ctx, cancel := context.WithTimeout(ctx, wait)
		defer cancel()

		select {
		case <-job.Stopped():
		case <-ctx.Done():
		}

		if report := job.Report(); report != nil && wait > 0 {
			drained.tell(report)
		}

		return nil
	})

	return drained, err
}

// tell says how it ended.
func (d *Drained) tell(r *actors.Report) {
	d.Stopped, d.Clean, d.Unfinished, d.Took = true, r.Clean, r.UnfinishedCount, r.Took

	if r.Err != nil {
		d.Error = r.Err.Error()
	}
}

// timeOf reads a time above 0; an empty text is 0.
func timeOf(name, text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}

	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, failf(statusBad, "the %s %q is no time above 0; write it like 20s", name, text)
	}

	return d, nil
}
