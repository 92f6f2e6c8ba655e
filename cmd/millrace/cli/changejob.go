package cli

import (
	"context"
	"fmt"
	"os"
	"os/user"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/pipeline"
)

// jobHelp is of the flag that names a job where several read a queue.
const jobHelp = "the `job`, where several read the queue"

// place is a queue in a job.
type place struct {
	job   string
	queue pipeline.Queue
}

// placesOf returns what names mean: queues, or topics for all of their queues, in the job that reads them.
func placesOf(status *admin.Status, job string, names []string) ([]place, error) {
	var (
		found []place
		known []string
	)

	for _, name := range names {
		var here []place

		for _, s := range status.Jobs {
			for i := range s.Queues {
				q := s.Queues[i].Queue
				known = append(known, q.String(), q.Topic)

				if (job == "" || job == s.Job) && (name == q.String() || name == q.Topic) {
					here = append(here, place{job: s.Job, queue: q})
				}
			}
		}

		if len(here) == 0 {
			slices.Sort(known)

			return nil, fmt.Errorf("no job there reads %q; %s", name, pipeline.Suggest(name, slices.Compact(known)))
		}

		for _, p := range here {
			if p.job != here[0].job {
				return nil, fmt.Errorf("the jobs %s and %s read %s; say by --job which one is meant", here[0].job, p.job, name)
			}
		}

		found = append(found, here...)
	}

	return found, nil
}

// changeQueues does something to queues, one after the other, and says so of each.
func (a *app) changeQueues(
	ctx context.Context, f askedFlags, job string, names []string, what string,
	change func(context.Context, *jobsThere, place) error,
) error {
	jobs, err := a.reach(ctx, f)
	if err != nil {
		return err
	}

	defer jobs.close()

	ctx, stop := a.untilInterrupted(ctx)
	defer stop()

	return jobs.do(ctx, func(ctx context.Context) error {
		status, err := jobs.Status(ctx, job)
		if err != nil {
			return err //nolint:wrapcheck // it says what is wrong
		}

		places, err := placesOf(status, job, names)
		if err != nil {
			return err
		}

		for _, p := range places {
			if err := change(ctx, jobs, p); err != nil {
				return err
			}

			_, _ = fmt.Fprintf(a.Out, "%s  %s %s\n", p.queue, p.job, what)
		}

		return nil
	})
}

func (a *app) pauseCommand() *cobra.Command {
	var (
		f        askedFlags
		job, why string
	)

	cmd := &cobra.Command{
		Use:     "pause QUEUE...",
		Short:   "Stop pulling from queues of a running job; what is in flight is finished",
		GroupID: groupJobs,
		Long: `Pause has a job pull nothing more from a queue, until it is resumed, given to another member, or the job ends.
QUEUE is like quakes/2, or a topic for all of its queues. Who asks why the queue stands is told who has paused it, and the words
of --why.

` + askedText,
		Example: `  millrace pause quakes/2 --why "until Monday"
  millrace pause quakes --admin 10.0.0.7:7411`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			words := "by " + whoAsks()
			if why != "" {
				words += ": " + why
			}

			return a.changeQueues(cmd.Context(), f, job, args, "is paused",
				func(ctx context.Context, jobs *jobsThere, p place) error {
					return jobs.Pause(ctx, p.job, p.queue, words)
				})
		},
	}

	f.add(cmd.Flags())
	cmd.Flags().StringVar(&job, "job", "", jobHelp)
	cmd.Flags().StringVar(&why, "why", "", "the `reason`, for those who ask why it stands")

	return cmd
}

// whoAsks names whoever runs this command.
func whoAsks() string {
	name, host := "somebody", "some host"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}

	if h, err := os.Hostname(); err == nil {
		host = h
	}

	return name + " on " + host
}

func (a *app) resumeCommand() *cobra.Command {
	var (
		f   askedFlags
		job string
	)

	cmd := &cobra.Command{
		Use:     "resume QUEUE...",
		Short:   "Go on pulling from queues that were paused",
		GroupID: groupJobs,
		Long:    "Resume takes back what pause has done.\n\n" + askedText,
		Example: `  millrace resume quakes/2`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.changeQueues(cmd.Context(), f, job, args, "goes on",
				func(ctx context.Context, jobs *jobsThere, p place) error { return jobs.Resume(ctx, p.job, p.queue) })
		},
	}

	f.add(cmd.Flags())
	cmd.Flags().StringVar(&job, "job", "", jobHelp)

	return cmd
}

func (a *app) seekCommand() *cobra.Command {
	var (
		f   askedFlags
		job string
	)

	cmd := &cobra.Command{
		Use:     "seek QUEUE OFFSET",
		Short:   "Make a running job go on at another offset of a queue",
		GroupID: groupJobs,
		Long: `Seek has a job go on at an offset. From there on everything is done again; everything below counts as finished.
It returns when that is committed: what runs of the queue may end first. For positions other than offsets, and for groups that
nobody works for, there is offsets reset.

` + askedText,
		Example: `  millrace seek quakes/2 1204`,
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := pipeline.ParseQueue(args[0]); err != nil {
				return usagef("%q is no queue; write it like quakes/2", args[0])
			}

			offset, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil || offset < 0 {
				return usagef("%q is no offset; write a number from 0 on", args[1])
			}

			return a.changeQueues(cmd.Context(), f, job, args[:1], "goes on at "+number(offset),
				func(ctx context.Context, jobs *jobsThere, p place) error {
					return jobs.Seek(ctx, p.job, p.queue, pipeline.Offset(offset))
				})
		},
	}

	f.add(cmd.Flags())
	cmd.Flags().StringVar(&job, "job", "", jobHelp)

	return cmd
}
