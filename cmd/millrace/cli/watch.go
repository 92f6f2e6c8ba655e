package cli

import (
	"context"
	"errors"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// How often jobs are looked at, and after how many looks progress is shown where it is not drawn in place: after the first
// second, and then every ten.
const (
	lookEvery  = 200 * time.Millisecond
	firstPlain = 5
	plainEvery = 50
)

// stateRunning is what a snapshot says of a job that has joined its group.
const stateRunning = "running"

// ending is why a session ends.
type ending uint8

const (
	// atEnd: everything is worked off.
	atEnd ending = iota
	// byItself: a job has stopped.
	byItself
	// asked: by an interrupt, or by the end of the context.
	asked
)

// watch shows progress until the session is to end.
func (s *session) watch(ctx context.Context) ending {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()

	stopped := make(chan struct{}, len(s.jobs))

	for _, job := range s.jobs {
		go func() {
			<-job.Stopped()

			stopped <- struct{}{}
		}()
	}

	for looks := 0; ; looks++ {
		snapshots := s.look(ctx)

		if looks == firstPlain || looks%plainEvery == 0 && looks > 0 || s.screen.live() {
			s.show(snapshots)
		}

		if s.untilEnd && len(snapshots) == len(s.jobs) && s.settled(ctx, snapshots) {
			s.show(s.look(ctx))

			return atEnd
		}

		select {
		case <-ctx.Done():
			return asked
		case <-s.Interrupts:
			return asked
		case <-stopped:
			return byItself
		case <-ticker.C:
		}
	}
}

// look returns the state of the jobs that run.
func (s *session) look(ctx context.Context) []*actors.Snapshot {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()

	var snapshots []*actors.Snapshot

	for _, job := range s.jobs {
		snapshot, err := job.Snapshot(ctx)
		if err != nil {
			continue
		}

		snapshots = append(snapshots, snapshot)

		if snapshot.State == stateRunning && !job.told {
			job.told = true

			s.announce(job.name, "started", "runs with "+plural(len(snapshot.Channels), "channel"))
		}
	}

	return snapshots
}

// show shows the state of the jobs.
func (s *session) show(snapshots []*actors.Snapshot) {
	if s.asJSON {
		for _, snapshot := range snapshots {
			s.emit(progressOf(snapshot, time.Since(s.began)))
		}

		return
	}

	var lines []string

	for _, snapshot := range snapshots {
		before := s.before(snapshot)
		lines = append(lines, progressLines(snapshot, before, time.Since(s.began), s.screen.live())...)
	}

	s.screen.draw(lines)
}

// before returns the snapshot of a job that was shown before this one, nil at first.
func (s *session) before(now *actors.Snapshot) *actors.Snapshot {
	for _, job := range s.jobs {
		if job.name == now.Job {
			before := job.last
			job.last = now

			return before
		}
	}

	return nil
}

// settled reports whether nothing is left to do. The snapshots are older than what the broker says, so nothing can slip
// through between them: a message is in flight in a snapshot, or waits at the broker, or is worked off.
func (s *session) settled(ctx context.Context, snapshots []*actors.Snapshot) bool {
	passed := make(map[pipeline.Queue]pipeline.Offset)

	for _, snapshot := range snapshots {
		if snapshot.State != stateRunning || len(snapshot.Queues) == 0 {
			return false
		}

		for i := range snapshot.Queues {
			q := &snapshot.Queues[i]
			if q.InFlight > 0 || q.Min < q.End || q.Waits == "its start" {
				return false
			}

			// Two jobs may read a queue: the one that is behind counts.
			if old, ok := passed[q.Queue]; !ok || q.Min < old {
				passed[q.Queue] = q.Min
			}
		}
	}

	b, err := s.broker.embedded.Describe(ctx)

	return err == nil && b.Delayed == 0 && allPassed(b.Topics, passed)
}

// allPassed reports whether the queues that the jobs read have been worked off.
func allPassed(topics []embedded.TopicInfo, passed map[pipeline.Queue]pipeline.Offset) bool {
	for _, t := range topics {
		for _, q := range t.Queues {
			if at, read := passed[q.Queue]; read && at < q.End {
				return false
			}
		}
	}

	return true
}

// finish drains the jobs and says how they ended.
func (s *session) finish(ctx context.Context, why ending) error {
	s.screen.keep()

	if why == asked {
		s.screen.notef("draining, up to %s (^C again to stop at once) …", span(s.drain))
	}

	atOnce := s.awaitDrain(ctx)

	var errs []error

	unfinished := 0

	for _, job := range s.jobs {
		unfinished += job.report.UnfinishedCount
		s.tellEnd(job)

		if job.report.Err != nil {
			errs = append(errs, job.report.Err)
		}
	}

	switch {
	case atOnce:
		return &codeError{code: ExitInterrupted, err: errors.Join(errs...)}
	case len(errs) > 0:
		return errors.Join(errs...)
	case unfinished > 0:
		return &codeError{code: ExitUnfinished}
	default:
		return nil
	}
}

// awaitDrain drains the jobs and shows how far that is. It reports whether a second interrupt stopped them at once.
func (s *session) awaitDrain(ctx context.Context) (atOnce bool) {
	drained := make(chan struct{})

	go func() {
		s.drainAll(0)
		close(drained)
	}()

	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	defer s.screen.clear()

	for {
		select {
		case <-drained:
			return atOnce
		case <-s.Interrupts:
			if !atOnce {
				s.screen.notef("stopping at once …")
			}

			atOnce = true

			go s.drainAll(-1)
		case <-ticker.C:
			if s.screen.live() && !s.asJSON {
				s.show(s.look(context.WithoutCancel(ctx)))
			}
		}
	}
}

// drainAll drains the jobs side by side, and returns when they have ended.
func (s *session) drainAll(budget time.Duration) {
	reports := make(chan struct{})

	for _, job := range s.jobs {
		go func() {
			report := job.Drain(budget)
			if budget >= 0 {
				job.report = report
			}

			reports <- struct{}{}
		}()
	}

	for range s.jobs {
		<-reports
	}
}
