package admin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

// Jobs are the jobs of a process that can be asked. The zero value has none. It is safe for concurrent use.
type Jobs struct {
	mu   sync.Mutex
	jobs []*actors.Running // guarded by mu
}

// Add adds jobs. One that stops stays, so that it can be said how it ended.
func (j *Jobs) Add(jobs ...*actors.Running) {
	j.mu.Lock()
	defer j.mu.Unlock()

	j.jobs = append(j.jobs, jobs...)
}

// All returns the jobs, in the order in which they were added.
func (j *Jobs) All() []*actors.Running {
	j.mu.Lock()
	defer j.mu.Unlock()

	return slices.Clone(j.jobs)
}

// named returns the jobs, or the one with a name when it is not empty.
func (j *Jobs) named(name string) ([]*actors.Running, error) {
	all := j.All()
	if name == "" {
		return all, nil
	}

	names := make([]string, len(all))

	for i, r := range all {
		if r.Name() == name {
			return []*actors.Running{r}, nil
		}

		names[i] = r.Name()
	}

	return nil, failf(statusNotFound, "no job %q runs here; %s", name, pipeline.Suggest(name, names))
}

// snapshot asks a job for its state; a job that has stopped has one, too, in which there is not much.
func snapshot(ctx context.Context, r *actors.Running) (*actors.Snapshot, error) {
	s, err := r.Snapshot(ctx)
	if errors.Is(err, actors.ErrStopped) {
		return &actors.Snapshot{
			Job: r.Name(), State: stateStopped, Queues: []actors.QueueStatus{}, Channels: []actors.ChannelStatus{},
		}, nil
	}

	if err != nil {
		return nil, fmt.Errorf("job %q does not answer: %w", r.Name(), err)
	}

	return s, nil
}

// The states of a job that mean something here.
const (
	stateRunning = "running"
	stateStopped = "stopped"
)
