package admin

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/millrace/millrace/actors"
)

// probeTime is how long a job may take to answer a probe.
const probeTime = 2 * time.Second

// health answers 200 as long as every job answers and none has ended with an error.
func (h *handler) health(w http.ResponseWriter, r *http.Request) {
	h.probe(w, r, func(s *actors.Snapshot, report *actors.Report) string {
		if report != nil && report.Err != nil {
			return fmt.Sprintf("%s has stopped with an error", s.Job)
		}

		return ""
	})
}

// ready answers 200 as long as there are jobs and all of them run.
func (h *handler) ready(w http.ResponseWriter, r *http.Request) {
	if len(h.o.Jobs.All()) == 0 {
		http.Error(w, "no job runs", http.StatusServiceUnavailable)

		return
	}

	h.probe(w, r, func(s *actors.Snapshot, _ *actors.Report) string {
		if s.State != stateRunning {
			return fmt.Sprintf("%s is %s", s.Job, s.State)
		}

		return ""
	})
}

// probe asks the jobs, and answers with what is wrong with the first one of which there is something. Errors are not shown,
// since no token is asked for.
func (h *handler) probe(w http.ResponseWriter, r *http.Request, wrong func(*actors.Snapshot, *actors.Report) string) {
	ctx, cancel := context.WithTimeout(r.Context(), probeTime)
	defer cancel()

	for _, job := range h.o.Jobs.All() {
		s, err := snapshot(ctx, job)
		text := job.Name() + " does not answer"

		if err == nil {
			text = wrong(s, job.Report())
		}

		if text != "" {
			http.Error(w, text, http.StatusServiceUnavailable)

			return
		}
	}

	_, _ = w.Write([]byte("ok\n"))
}
