package admin

import (
	"net/http"

	"github.com/millrace/millrace/actors"
)

// Status is the answer to /api/v1/status.
type Status struct {
	Jobs []*actors.Snapshot `json:"jobs"`
}

// status answers with the state of the jobs, or of one: ?job=.
func (h *handler) status(r *http.Request) (any, error) {
	jobs, err := h.o.Jobs.named(r.URL.Query().Get(jobKey))
	if err != nil {
		return nil, err
	}

	s := Status{Jobs: []*actors.Snapshot{}}

	for _, job := range jobs {
		one, err := snapshot(r.Context(), job)
		if err != nil {
			return nil, err
		}

		one.AddCounts()

		s.Jobs = append(s.Jobs, one)
	}

	return s, nil
}
