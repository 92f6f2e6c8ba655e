package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/actors/admin"
)

// drainEvery is how often it is shown how far a drain is, on a terminal; elsewhere it is a line every five of them.
const drainEvery = time.Second

// drainFlags are the flags of drain.
type drainFlags struct {
	askedFlags

	budget, timeout time.Duration
	noWait          bool
}

func (a *app) drainCommand() *cobra.Command {
	var f drainFlags

	cmd := &cobra.Command{
		Use:     "drain JOB",
		Short:   "Have a running job finish what is in flight, commit and stop",
		GroupID: groupJobs,
		Long: `Drain ends a job as ^C does for those of "millrace run": nothing new is pulled, what is in flight is finished and
committed. It waits for the end and shows how far that is; with --no-wait it only begins it. ^C ends the waiting, and the job
goes on to drain. The process of "millrace run" ends with the first of its jobs that does.

The exit code is 0 when nothing is left unfinished, and 4 when something is, which comes again.

` + askedText,
		Example: `  millrace drain quakes
  millrace drain quakes --budget 5m --timeout 6m --admin 10.0.0.7:7411`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.budget < 0 {
				return usagef("drain: --budget is %v; use a time above 0, or leave it out for the job's own", f.budget)
			}

			if f.timeout < 0 {
				return usagef("drain: --timeout is %v; use a time above 0, or leave it out to wait without end", f.timeout)
			}

			jobs, err := a.reach(cmd.Context(), f.askedFlags)
			if err != nil {
				return err
			}

			defer jobs.close()

			ctx, stop := a.untilInterrupted(cmd.Context())
			defer stop()

			if f.noWait {
				err = jobs.do(ctx, func(ctx context.Context) error { return jobs.Drain(ctx, args[0], f.budget) })
				if err == nil {
					_, err = fmt.Fprintf(a.Out, "%s  drains\n", args[0])
				}

				return err //nolint:wrapcheck // of the jobs, or of the output
			}

			drained, err := a.awaitDrain(ctx, jobs, args[0], &f)
			if err != nil {
				return err
			}

			return a.tellDrained(args[0], drained)
		},
	}

	f.add(cmd.Flags())
	cmd.Flags().DurationVar(&f.budget, "budget", 0, "how long work in flight may take; 0 means the job's own")
	cmd.Flags().DurationVar(&f.timeout, "timeout", 0, "how long to wait for the end; 0 means as long as it takes")
	cmd.Flags().BoolVar(&f.noWait, "no-wait", false, "do not wait for the end")
	cmd.MarkFlagsMutuallyExclusive("timeout", "no-wait")

	return cmd
}

// awaitDrain drains a job and shows how far that is.
func (a *app) awaitDrain(ctx context.Context, jobs *jobsThere, name string, f *drainFlags) (*admin.Drained, error) {
	if f.timeout > 0 {
		var cancel context.CancelFunc

		ctx, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}

	type result struct {
		drained *admin.Drained
		err     error
	}

	ended := make(chan result, 1)

	go func() {
		drained, err := jobs.DrainAndWait(ctx, name, f.budget)
		ended <- result{drained, err}
	}()

	shown := newScreen(a.Err, a.Err, false)
	defer shown.clear()

	every := drainEvery
	if !shown.live() {
		every *= 5
	}

	ticker := time.NewTicker(every)
	defer ticker.Stop()

	for {
		select {
		case <-ticker.C:
			a.showDrain(ctx, jobs, name, shown)
		case r := <-ended:
			switch {
			case r.err == nil:
				return r.drained, nil
			case errors.Is(ctx.Err(), context.DeadlineExceeded):
				return nil, fmt.Errorf("%s has not stopped within %v and goes on to drain; `millrace status` says how far it is",
					name, f.timeout)
			case ctx.Err() != nil:
				return nil, fmt.Errorf("nobody waits any more; %s goes on to drain", name)
			default:
				return nil, jobs.told(r.err)
			}
		}
	}
}

// showDrain shows how far a job is, if it says so.
func (a *app) showDrain(ctx context.Context, jobs *jobsThere, name string, shown *screen) {
	ctx, cancel := context.WithTimeout(ctx, drainEvery)
	defer cancel()

	status, err := jobs.Status(ctx, name)
	if err != nil {
		return // it may have ended just now, and how is told by the answer
	}

	for _, s := range status.Jobs {
		shown.draw(progressLines(s, nil, 0, false))
	}
}

// tellDrained says how a job has ended.
func (a *app) tellDrained(name string, d *admin.Drained) error {
	how, code := "stopped clean", ExitOK

	switch {
	case d.Error != "":
		return fmt.Errorf("%s has failed: %s", name, d.Error)
	case d.Unfinished > 0:
		how, code = "stopped with "+plural(d.Unfinished, "message")+" left unfinished, to come again", ExitUnfinished
	case !d.Clean:
		how = "stopped, and not all that is finished is committed"
	}

	if _, err := fmt.Fprintf(a.Out, "%s  %s, after %s\n", name, how, span(d.Took)); err != nil {
		return err //nolint:wrapcheck // of the output
	}

	if code != ExitOK {
		return &codeError{code: code}
	}

	return nil
}
