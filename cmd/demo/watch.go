package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/millrace/millrace/actors"
)

// look is how often the jobs are looked at, plainEvery after how many looks a line is printed where there is no terminal.
const (
	look       = 100 * time.Millisecond
	plainEvery = 10
	// patience is how much later than its delay a message may come again.
	patience = 5 * time.Second
)

// watch publishes the feed and shows what the jobs make of it, until everything is finished or ctx ends, which is when
// stopped is true.
func (d *session) watch(ctx context.Context) (stopped bool, err error) {
	publishing, cancel := context.WithCancel(ctx)
	published := make(chan error, 1)

	go func() { published <- publish(publishing, d.broker, d.broker, d.feed) }()

	defer func() {
		cancel()

		if published != nil {
			err = errors.Join(err, notCancelled(<-published))
		}
	}()

	ticker := time.NewTicker(look)
	defer ticker.Stop()

	for looks := 0; ; {
		select {
		case <-ctx.Done():
			return true, nil
		case <-d.quakes.Stopped(): // by itself: the drain tells why
			return false, nil
		case <-d.alerts.Stopped():
			return false, nil
		case err := <-published:
			published = nil

			if err := notCancelled(err); err != nil {
				return false, err
			}
		case <-ticker.C:
			snapshots, err := d.show(ctx, looks)
			looks++

			if err != nil || published != nil {
				continue // something has ended, or there is more to come
			}

			done, err := d.settled(ctx, snapshots)
			if ctx.Err() == nil && (done || err != nil) {
				return false, err
			}
		}
	}
}

// notCancelled leaves out the error of publishing that was stopped.
func notCancelled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}

	return err
}

// show shows the progress of both jobs.
func (d *session) show(ctx context.Context, looks int) ([2]*actors.Snapshot, error) {
	var (
		snapshots [2]*actors.Snapshot
		lines     []string
	)

	for i, job := range []*actors.Running{d.quakes, d.alerts} {
		s, err := job.Snapshot(ctx)
		if err != nil {
			return snapshots, fmt.Errorf("demo: %w", err)
		}

		snapshots[i] = s
		lines = append(lines, progressLines(s, time.Since(d.began), d.screen.live())...)
	}

	d.tellAll()

	if d.screen.live() || looks%plainEvery == 0 {
		d.screen.draw(lines)
	}

	return snapshots, nil
}

// tellAll prints what has been noted.
func (d *session) tellAll() {
	for {
		select {
		case line := <-d.told:
			d.screen.notef("  %s", line)
		default:
			return
		}
	}
}

// settled reports whether nothing is left to do. Not every broker says how many messages wait there to be delivered again,
// so the books have to say that nothing is missing; when they never do, no message comes for longer than any of them waits.
func (d *session) settled(ctx context.Context, snapshots [2]*actors.Snapshot) (bool, error) {
	var at []standing

	for _, s := range snapshots {
		for i := range s.Queues {
			q := &s.Queues[i]
			at = append(at, standing{position: position{group: s.Job, queue: q.Queue, committed: q.Min, end: q.End}})
		}
	}

	if len(at) == 0 || slices.ContainsFunc(at, func(s standing) bool { return s.lag() > 0 }) {
		d.idle = time.Time{}

		return false, nil
	}

	switch now := time.Now(); {
	case d.idle.IsZero():
		d.idle = now
	case now.Sub(d.idle) > 2*d.retryDelay+patience:
		return true, nil
	}

	e, err := gather(ctx, d.broker, d.dir, d.feed, d.runs, at)
	if err != nil {
		return false, err
	}

	return len(audit(e).unfinished) == 0, nil
}

// drain ends both jobs, the first one first, and records whether nothing was left in flight.
func (d *session) drain(stopped bool) error {
	if stopped {
		d.screen.notef("draining (^C again to stop at once) …")
	}

	quakes, alerts := d.quakes.Drain(0), d.alerts.Drain(0)
	close(d.trouble.forever)
	d.tellAll()

	for name, f := range d.files {
		if torn := f.Stats().Torn; torn > 0 {
			d.screen.notef("  %s: cut off %s of a line that a killed run has left unfinished", name, plural(int(torn), "byte"))
		}
	}

	if err := errors.Join(quakes.Err, alerts.Err); err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	if quakes.Clean && alerts.Clean {
		return d.runs.clean()
	}

	d.screen.notef("the drain has left %s unfinished", plural(quakes.UnfinishedCount+alerts.UnfinishedCount, "message"))

	return nil
}

// counted returns what the jobs have counted; nothing when one of them has ended.
func (d *session) counted(ctx context.Context) []counted {
	var all []counted

	for _, job := range []*actors.Running{d.quakes, d.alerts} {
		s, err := job.Snapshot(ctx)
		if err != nil {
			return nil
		}

		c := counted{
			job: s.Job, completed: int(s.Counts.Completed), filtered: int(s.Counts.Filtered), dead: int(s.Counts.DeadLettered),
			sentBack: int(s.Counts.SentBack), redelivered: int(s.Counts.Repeated), hung: s.Hung, broken: int(s.Counts.Broken),
		}

		for i := range s.Channels {
			c.retried += int(s.Channels[i].Counts.Retried)
			c.panics += int(s.Channels[i].Counts.Panics)
		}

		all = append(all, c)
	}

	return all
}

// reconcile audits what is on disk and prints the result.
func (d *session) reconcile(ctx context.Context, counts []counted, stopped bool) (int, error) {
	at, err := bothStandings(ctx, d.broker)
	if err != nil {
		return exitFailed, err
	}

	e, err := gather(ctx, d.broker, d.dir, d.feed, d.runs, at)
	if err != nil {
		return exitFailed, err
	}

	v := audit(e)
	v.checkCounts(counts, !stopped && d.runs.current() == 1)

	until := ""
	if stopped {
		until = ", up to ^C"
	}

	d.screen.erase()
	v.write(d.screen.out, counts, until)

	switch balanced := v.conclude(d.screen.out, stopped); {
	case !balanced:
		return exitUnbalanced, nil
	case stopped:
		return exitStopped, nil
	default:
		return exitBalanced, nil
	}
}

// killSelf ends the process as kill -9 does.
func killSelf() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
}
