package actors

import "time"

// step is what a job as a whole waits for.
type step struct {
	what string
	// since is when that began, by the clock.
	since int64
}

// wait notes what the job waits for from now on. It may be called from any goroutine.
func (e *engine) wait(what string) { e.step.Store(&step{what: what, since: e.clock.now()}) }

// waits says what the job as a whole waits for, and since when; nothing while it has queues to go on with.
func (e *engine) waits() (string, time.Time) {
	s := e.step.Load()
	if s == nil || e.state == engineRunning && len(e.queues) > 0 || e.state == engineStopped {
		return "", time.Time{}
	}

	return s.what, e.clock.at(s.since)
}
