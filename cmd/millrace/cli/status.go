package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/pipeline"
)

func (a *app) statusCommand() *cobra.Command {
	var (
		broker string
		asJSON bool
	)

	cmd := &cobra.Command{
		Use:     "status [JOB]",
		Short:   "Show the state of running jobs",
		GroupID: groupJobs,
		Example: `  millrace status
  millrace status quakes --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			snapshots, err := a.snapshots(cmd.Context(), broker)
			if err != nil {
				return err
			}

			if snapshots, err = named(snapshots, args); err != nil {
				return err
			}

			if asJSON {
				events := []event{}
				for _, s := range snapshots {
					events = append(events, progressOf(s, 0))
				}

				return a.encode(events)
			}

			for _, s := range snapshots {
				for _, line := range progressLines(s, nil, 0, true) {
					_, _ = fmt.Fprintln(a.Out, line)
				}
			}

			return nil
		},
	}

	cmd.Flags().StringVarP(&broker, brokerFlag, "b", defaultBroker, brokerHelp)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")

	return cmd
}

func (a *app) whyCommand() *cobra.Command {
	var broker string

	cmd := &cobra.Command{
		Use:     "why [QUEUE]...",
		Short:   "Say why queues stand still: which message, who holds it, and what happens next",
		GroupID: groupJobs,
		Long: `Why asks the jobs that run on the broker. For each queue that does not move it says which message holds the
committed offset where it is, which channel, lane and stage has that message, since when and on which attempt, its last error, and
what happens next.

QUEUE is like quakes/2, or a topic for all of its queues; then also those that move are explained.`,
		Example: `  millrace why
  millrace why quakes/2`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			snapshots, err := a.snapshots(cmd.Context(), broker)
			if err != nil {
				return err
			}

			return a.why(snapshots, args)
		},
	}

	cmd.Flags().StringVarP(&broker, brokerFlag, "b", defaultBroker, brokerHelp)

	return cmd
}

// snapshots asks the jobs that run on a broker.
func (a *app) snapshots(ctx context.Context, broker string) ([]*actors.Snapshot, error) {
	dir, err := a.directory(broker)
	if err != nil {
		return nil, err
	}

	client, err := control.Connect(ctx, dir)
	if errors.Is(err, control.ErrNotServed) {
		return nil, fmt.Errorf("nothing runs on the broker in %s; start a job with `millrace run`, "+
			"or name another one with --broker", dir)
	}

	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is wrong
	}

	defer client.Close()

	snapshots, err := client.Jobs(ctx)
	if err == nil && len(snapshots) == 0 {
		err = fmt.Errorf("no job runs on the broker in %s; start one with `millrace run`", dir)
	}

	return snapshots, err
}

// named keeps the snapshots of a job, when one is named.
func named(snapshots []*actors.Snapshot, args []string) ([]*actors.Snapshot, error) {
	if len(args) == 0 {
		return snapshots, nil
	}

	var names []string

	for _, s := range snapshots {
		if s.Job == args[0] {
			return []*actors.Snapshot{s}, nil
		}

		names = append(names, s.Job)
	}

	return nil, fmt.Errorf("no job %q runs there; %s", args[0], pipeline.Suggest(args[0], names))
}

// why explains queues: those that stand, or those that are asked for.
func (a *app) why(snapshots []*actors.Snapshot, asked []string) error {
	var names []string

	for _, s := range snapshots {
		for i := range s.Queues {
			names = append(names, s.Queues[i].Queue.String(), s.Queues[i].Queue.Topic)
		}
	}

	for _, name := range asked {
		if !slices.Contains(names, name) {
			slices.Sort(names)

			return fmt.Errorf("no job here reads %q; %s", name, pipeline.Suggest(name, slices.Compact(names)))
		}
	}

	for _, s := range snapshots {
		a.whyJob(s, asked)
	}

	return nil
}

func (a *app) whyJob(s *actors.Snapshot, asked []string) {
	var moving []string

	for i := range s.Queues {
		q := &s.Queues[i]

		switch {
		case slices.Contains(asked, q.Queue.String()), slices.Contains(asked, q.Queue.Topic), len(asked) == 0 && stands(q, s.At):
			_, _ = fmt.Fprintln(a.Out, strings.Join(explainQueue(q, s.At), "\n"))
		case len(asked) == 0 && q.End > 0:
			moving = append(moving, fmt.Sprintf("%s (lag %s)", q.Queue, number(q.Lag())))
		}
	}

	switch {
	case len(moving) > 0:
		_, _ = fmt.Fprintf(a.Out, "%s: these move: %s\n", s.Job, strings.Join(moving, ", "))
	case len(asked) == 0 && len(s.Queues) == 0:
		_, _ = fmt.Fprintf(a.Out, "%s: it is %s and has no queue yet\n", s.Job, s.State)
	}
}
