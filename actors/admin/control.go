package admin

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// Change asks for something of a queue, or of a job.
type Change struct {
	// Queue is the queue to pause, to resume or to seek.
	Queue pipeline.Queue `json:"queue,omitzero"`
	// Why is shown by those who ask why the queue stands; for a pause.
	Why string `json:"why,omitempty"`
	// Offset is where to go on, for a seek.
	Offset *pipeline.Offset `json:"offset,omitempty"`
	// Budget is how long work in flight may take, such as "30s", for a drain; empty means the job's own.
	Budget string `json:"budget,omitempty"`
	// Wait is how long the answer may wait for the end of a drain, such as "20s", which is the most; empty means not at all.
	Wait string `json:"wait,omitempty"`
}

// Done is the answer to a change.
type Done struct {
	Done bool `json:"done"`
}

func (h *handler) pause(r *http.Request) (any, error) {
	return h.change(r, true, func(ctx context.Context, job *actors.Running, c Change) error {
		if c.Why == "" {
			c.Why = "by a request to the admin endpoint"
		}

		return job.Pause(ctx, c.Queue, c.Why)
	})
}

func (h *handler) resume(r *http.Request) (any, error) {
	return h.change(r, true, func(ctx context.Context, job *actors.Running, c Change) error {
		return job.Resume(ctx, c.Queue)
	})
}

func (h *handler) seek(r *http.Request) (any, error) {
	return h.change(r, true, func(ctx context.Context, job *actors.Running, c Change) error {
		if c.Offset == nil {
			return failf(statusBad, `a seek needs an offset, such as {"queue": "quakes/2", "offset": 1204}`)
		}

		return job.Seek(ctx, c.Queue, *c.Offset)
	})
}

// change reads what is asked for and does it with the job of the path.
func (h *handler) change(r *http.Request, queue bool, do func(context.Context, *actors.Running, Change) error) (any, error) {
	jobs, err := h.o.Jobs.named(r.PathValue(jobKey))
	if err != nil {
		return nil, err
	}

	var c Change
	if err := decode(r, &c); err != nil {
		return nil, err
	}

	if queue && c.Queue.Topic == "" {
		return nil, failf(statusBad, `the body names no queue; write one like {"queue": "quakes/2"}`)
	}

	if err := do(r.Context(), jobs[0], c); err != nil {
		return nil, err
	}

	return Done{Done: true}, nil
}

// decode reads the body of a request; an empty one changes nothing.
func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()

	err := decoder.Decode(into)
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}

	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes, which is the most here", large.Limit)
	}

	return failf(statusBad, "the body: %v", err)
}
