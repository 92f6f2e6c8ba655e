package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

// look is how often the jobs are looked at, plainEvery after how many looks a line is printed where there is no terminal.
const (
	look       = 100 * time.Millisecond
	plainEvery = 10
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

// settled reports whether nothing is left to do. The snapshots are older than what the broker says, so nothing can have
// slipped through between them: a message is in flight in a snapshot, or above a commit watermark, or waits at the
// broker to be delivered again.
func (d *session) settled(ctx context.Context, snapshots [2]*actors.Snapshot) (bool, error) {
	passed := make(map[pipeline.Queue]pipeline.Offset)

	for _, s := range snapshots {
		for i := range s.Queues {
			passed[s.Queues[i].Queue] = s.Queues[i].Min
		}
	}

	b, err := d.broker.Describe(ctx)
	if err != nil {
		return false, fmt.Errorf("demo: %w", err)
	}

	return b.Delayed == 0 && allPassed(b.Topics, passed), nil
}

// allPassed reports whether the jobs' topics have been worked off.
func allPassed(topics []embedded.TopicInfo, passed map[pipeline.Queue]pipeline.Offset) bool {
	for _, t := range topics {
		if t.Name == quakesDead || t.Name == alertsDead || strings.HasPrefix(t.Name, consumer.DeadLetterTopic("")) {
			continue
		}

		for _, q := range t.Queues {
			if passed[q.Queue] < q.End {
				return false
			}
		}
	}

	return true
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
	e, err := gather(ctx, d.broker, d.dir, d.feed, d.runs)
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
