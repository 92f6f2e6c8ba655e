package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/file"
	"github.com/millrace/millrace/plugins/topic"
)

// The exit codes; the help explains them.
const (
	exitBalanced   = 0
	exitFailed     = 1
	exitUsage      = 2
	exitUnbalanced = 3
	exitStopped    = 130
)

// How the jobs of a demo are tuned: so that a run of a second has something to show.
const (
	commitEvery = 100 * time.Millisecond
	// timeout is how long a lane may work at one event.
	timeout  = 2 * time.Second
	attempts = 3
)

// session is one run over a directory.
type session struct {
	options

	dir    string
	screen *screen
	broker *ground
	runs   *runs
	feed   []event
	// trouble is what this run breaks.
	trouble *trouble
	files   map[string]*file.Sink
	// quakes and alerts are the running jobs.
	quakes, alerts *actors.Running
	// told takes the lines about events; what does not fit is left out.
	told chan string
	// began is when the jobs were started, idle since when every queue is worked off; zero while one is not.
	began, idle time.Time
}

// run is the demo from start to end; it returns the exit code.
func run(ctx context.Context, o options, s *screen) (code int, err error) {
	dir, err := workDir(o.keep)
	if err != nil {
		return exitFailed, err
	}

	runs, err := openRuns(dir, o.repeat, o.broker)
	if err != nil {
		return exitFailed, err
	}

	broker, err := openGround(o.broker, dir, runs.Space) //nolint:contextcheck // it takes none
	if err != nil {
		return exitFailed, err
	}

	d := &session{options: o, dir: dir, screen: s, broker: broker, runs: runs, told: make(chan string, 100)}
	code, err = d.run(ctx)

	return d.end(context.WithoutCancel(ctx), code, err)
}

// end closes the broker, and removes what the run has made unless somebody is to see it.
func (d *session) end(ctx context.Context, code int, err error) (int, error) {
	cluster := d.broker.clear != nil
	remove := d.keep == "" && err == nil && (code == exitBalanced || code == exitStopped)

	if remove && cluster {
		if err = d.broker.clear(ctx); err != nil {
			err = fmt.Errorf("demo: removing the namespace %s: %w", d.runs.Space, err)
		}
	}

	err = errors.Join(err, d.broker.close())

	where := d.dir
	if cluster {
		where += ", and at the cluster in the namespace " + d.runs.Space
	}

	switch {
	case d.keep != "":
		d.screen.notef("kept in %s", where)
	case remove:
		if removed := os.RemoveAll(d.dir); removed != nil { // after the broker, which still writes there
			err = errors.Join(err, fmt.Errorf("demo: %w", removed))
		}
	default:
		d.screen.notef("left for you to look at: %s", where)
	}

	if err != nil {
		code = exitFailed
	}

	return code, err
}

// workDir returns the directory to work in: keep, or one of the system's temporary ones.
func workDir(keep string) (string, error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "millrace-demo-")
		if err != nil {
			return "", fmt.Errorf("demo: %w", err)
		}

		return dir, nil
	}

	if err := os.MkdirAll(keep, 0o750); err != nil {
		return "", fmt.Errorf("demo: -keep: %w", err)
	}

	return keep, nil
}

func (d *session) run(ctx context.Context) (int, error) {
	if err := d.prepare(ctx); err != nil {
		return exitFailed, err
	}

	if d.killAfter > 0 {
		time.AfterFunc(d.killAfter, killSelf)
	}

	if err := d.start(); err != nil {
		return exitFailed, err
	}

	// Only the jobs' work is cut short by ctx; what follows reads what they have left.
	after := context.WithoutCancel(ctx)
	stopped, err := d.watch(ctx)
	counts := d.counted(after)

	if err := errors.Join(err, d.drain(stopped)); err != nil {
		return exitFailed, err
	}

	return d.reconcile(after, counts, stopped)
}

// prepare opens the books of the directory and makes the topics.
func (d *session) prepare(ctx context.Context) error {
	for name, queues := range topics() {
		if err := d.broker.createTopic(ctx, name, queues); err != nil {
			return fmt.Errorf("demo: %w", err)
		}
	}

	var err error
	if d.feed, err = readFeed(d.runs.Repeat); err != nil {
		return err
	}

	d.trouble = pickTrouble(d.options, d.feed)

	return nil
}

// start starts both jobs, the second one first.
func (d *session) start() error {
	p := parts{
		run: d.runs.current(), trouble: d.trouble.stage(),
		retry: retryOptions{attempts: attempts, delay: d.retryDelay, timeout: timeout},
	}

	d.files = make(map[string]*file.Sink)

	for name, sink := range map[string]*pipeline.Sink{
		archiveFile: &p.archive, summariesFile: &p.summaries, alertsFile: &p.alerts,
	} {
		f, err := file.New(file.Options{Path: filepath.Join(d.dir, name)}, nil)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}

		d.files[name], *sink = f, f
	}

	alerts, err := topic.New(d.broker, topic.Options{Name: alertsTopic})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	p.alertsTopic = alerts
	options := actors.Options{CommitEvery: commitEvery}
	d.began = time.Now()

	if d.alerts, err = actors.Start(alertsJob(p), d.broker, options); err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	if d.quakes, err = actors.Start(quakesJob(p), d.broker, options); err != nil {
		d.alerts.Drain(0)

		return fmt.Errorf("demo: %w", err)
	}

	for _, job := range []*actors.Running{d.alerts, d.quakes} {
		job.OnEvent(d.note)
	}

	return nil
}

// note passes on what is worth a line. It is called by actors and must not wait.
func (d *session) note(e actors.Event) {
	if line := tell(e); line != "" {
		select {
		case d.told <- line:
		default:
		}
	}
}
