package admin

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// Answers is the answer to /api/v1/why.
type Answers struct {
	Jobs []JobWhy `json:"jobs"`
}

// JobWhy says why the queues of a job are where they are.
type JobWhy struct {
	Job   string    `json:"job"`
	State string    `json:"state"`
	At    time.Time `json:"at,omitzero"`
	// Cause and Because are about the job as a whole, when it has no queues to speak of; Since is how long that lasts.
	Cause   Cause     `json:"cause,omitempty"`
	Because string    `json:"because,omitempty"`
	Since   time.Time `json:"since,omitzero"`
	// Warning says what is wrong with the group as a whole while work goes on, and how to mend it; empty when nothing is.
	Warning string `json:"warning,omitempty"`
	// Away and BackAt are about messages that were sent back for a delay; see [actors.Snapshot].
	Away   int64     `json:"away"`
	BackAt time.Time `json:"backAt,omitzero"`
	Queues []Why     `json:"queues"`
}

// Why says why a queue's committed offset is where it is.
type Why struct {
	actors.QueueStatus

	// Stands says that it does not move although there is something to do.
	Stands bool `json:"stands"`
	// Cause is one of a few words, which docs/why.md lists; Because says it in a sentence.
	Cause   Cause  `json:"cause"`
	Because string `json:"because"`
	// Since is since when that is so, Then what happens next, and ThenAt when, as far as known; a queue that moves has none.
	Since  time.Time `json:"since,omitzero"`
	Then   string    `json:"then,omitempty"`
	ThenAt time.Time `json:"thenAt,omitzero"`
	// Lanes are the ones that a message waits for which waits for a lane; of a message that is handed on, those that may have it.
	Lanes []actors.LaneStatus `json:"lanes,omitempty"`
}

// why answers for all jobs, or one (?job=), for all queues, or some (?queue=, which may be a topic, and be repeated).
func (h *handler) why(r *http.Request) (any, error) {
	query := r.URL.Query()

	jobs, err := h.o.Jobs.named(query.Get(jobKey))
	if err != nil {
		return nil, err
	}

	a := Answers{Jobs: []JobWhy{}}

	var known []string

	for _, job := range jobs {
		w, err := Ask(r.Context(), job)
		if err != nil {
			return nil, err
		}

		for i := range w.Queues {
			known = append(known, w.Queues[i].Queue.String(), w.Queues[i].Queue.Topic)
		}

		if asked := query[queueKey]; len(asked) > 0 {
			w.Queues = slices.DeleteFunc(w.Queues, func(q Why) bool {
				return !slices.Contains(asked, q.Queue.String()) && !slices.Contains(asked, q.Queue.Topic)
			})
		}

		a.Jobs = append(a.Jobs, w)
	}

	slices.Sort(known)

	for _, name := range query[queueKey] {
		if !slices.Contains(known, name) {
			return nil, failf(statusNotFound, "no job here reads %q; %s", name, pipeline.Suggest(name, slices.Compact(known)))
		}
	}

	return a, nil
}

// Ask asks a job of this process why its queues are where they are, with the stacks of what runs.
func Ask(ctx context.Context, job *actors.Running) (JobWhy, error) {
	s, err := snapshot(ctx, job)
	if err != nil {
		return JobWhy{}, err
	}

	s.AddStacks()

	w := Explain(s)
	if report := job.Report(); report != nil {
		w.Cause, w.Because = JobStopped, "it was asked to stop"

		if report.Err != nil {
			w.Because = "it has stopped by itself: " + report.Err.Error()
		}
	}

	return w, nil
}

// Explain says why the queues of a job are where they are.
func Explain(s *actors.Snapshot) JobWhy {
	w := JobWhy{Job: s.Job, State: s.State, At: s.At, Warning: s.Warning, Away: s.Away, BackAt: s.BackAt, Queues: []Why{}}

	switch {
	case s.Waits == "":
	case s.State == "starting":
		w.Cause, w.Because, w.Since = JobStarts, "it waits for "+s.Waits, s.WaitsSince
	case s.State == stateRunning:
		w.Cause, w.Because, w.Since = NoQueue, "it waits for "+s.Waits, s.WaitsSince
	default:
		w.Cause, w.Because, w.Since = JobDrains, "it waits for "+s.Waits, s.WaitsSince
	}

	for i := range s.Queues {
		q := Why{QueueStatus: s.Queues[i]}
		q.Cause, q.Because = causeOf(&q.QueueStatus, s.At)
		o := outlookOf(&q.QueueStatus, q.Cause)
		q.Since, q.Then, q.ThenAt = o.since, o.then, o.thenAt
		q.Stands = q.Cause != Moves && q.Cause != NoMessages
		q.Lanes = awaited(s, q.Blocking)
		w.Queues = append(w.Queues, q)
	}

	return w
}

// awaited returns the lanes that are busy while a message waits for one of them, be it to be taken up or to be handed on.
func awaited(s *actors.Snapshot, b *actors.Blocking) []actors.LaneStatus {
	if b == nil || b.Doing != "waits for a lane" && b.Doing != onItsWay {
		return nil
	}

	var lanes []actors.LaneStatus

	for i := range s.Channels {
		for _, lane := range s.Channels[i].Lanes {
			here := b.Doing == onItsWay || s.Channels[i].Name == b.Channel && (b.Lane < 0 || b.Lane == lane.Lane)
			if here && lane.Stage != "" {
				lanes = append(lanes, lane)
			}
		}
	}

	return lanes
}
