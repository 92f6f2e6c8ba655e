package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
)

func (a *app) statusCommand() *cobra.Command {
	var f viewFlags

	cmd := &cobra.Command{
		Use:     "status [JOB]",
		Short:   "Show the state of running jobs: their queues, channels and lanes",
		GroupID: groupJobs,
		Long: `Status lists of each job its queues, with where they are and whether they stand, its channels, and its lanes,
with what runs in them now. In flight is admitted and not finished; above is finished, and waits for an earlier message to be
committed.

With --json it writes what the admin endpoint answers to /api/v1/status: {"jobs": […]}, each with job, at, state, queues,
channels, counts and hung. docs/admin.md says where each field is described. With --watch that is a line each time.

` + askedText,
		Example: `  millrace status
  millrace status quakes --json
  millrace status --watch
  millrace status --admin 10.0.0.7:7411 --admin-token-file token`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var before map[string]*actors.Snapshot

			return a.show(cmd.Context(), f, func(ctx context.Context, jobs *jobsThere) (view, error) {
				status, err := jobs.Status(ctx, strings.Join(args, ""))
				if err != nil {
					return view{}, err //nolint:wrapcheck // it says what is wrong
				}

				if len(status.Jobs) == 0 {
					return view{}, fmt.Errorf("no job runs %s; start one with `millrace run`", jobs.place)
				}

				var v view
				v, before = viewOf(status, before)

				return v, nil
			})
		},
	}

	f.add(cmd.Flags())

	return cmd
}

// viewOf shows the state of jobs, with rates since the states before. It returns the states for the next time.
func viewOf(status *admin.Status, before map[string]*actors.Snapshot) (view, map[string]*actors.Snapshot) {
	v, now := view{value: status}, make(map[string]*actors.Snapshot)

	for _, s := range status.Jobs {
		v.lines = append(v.lines, statusLines(s, before[s.Job])...)
		now[s.Job] = s
	}

	return v, now
}

func (a *app) whyCommand() *cobra.Command {
	var f viewFlags

	cmd := &cobra.Command{
		Use:     "why [QUEUE]...",
		Short:   "Say why queues stand still: which message, who holds it, and what happens next",
		GroupID: groupJobs,
		Long: `Why asks running jobs. For each queue that does not move it says which message holds the committed offset where it
is, which channel, lane and stage has that message, since when and on which attempt, its last error, and what happens next and
when. docs/why.md lists the causes.

QUEUE is like quakes/2, or a topic for all of its queues; then also those that move are explained.

With --json it writes what the admin endpoint answers to /api/v1/why: {"jobs": […]}, each with job, state, at and queues, and each
queue with stands, cause, because, since, then, thenAt and blocking beside what status has of it; also those that move, so that
.jobs[].queues[] | select(.stands) picks those that stand. docs/admin.md says where each field is described. With --watch that is
a line each time.

` + askedText,
		Example: `  millrace why
  millrace why quakes/2
  millrace why --json
  millrace why --watch --admin 10.0.0.7:7411`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.show(cmd.Context(), f, func(ctx context.Context, jobs *jobsThere) (view, error) {
				answers, err := jobs.Why(ctx, args...)
				if err != nil {
					return view{}, err //nolint:wrapcheck // it says what is wrong
				}

				if len(answers.Jobs) == 0 {
					return view{}, fmt.Errorf("no job runs %s; start one with `millrace run`", jobs.place)
				}

				v := view{value: answers}
				for i := range answers.Jobs {
					v.lines = append(v.lines, whyLines(&answers.Jobs[i], len(args) > 0)...)
				}

				return v, nil
			})
		},
	}

	f.add(cmd.Flags())

	return cmd
}

// whyLines explains the queues of a job: those that stand, or with all each of them.
func whyLines(w *admin.JobWhy, all bool) []string {
	var lines, moving []string

	if w.Cause != "" {
		lines = append(lines, fmt.Sprintf("%s  %s: %s%s", w.Job, w.State, w.Because, since(w.Since, w.At)))
	}

	if w.Warning != "" {
		lines = append(lines, fmt.Sprintf("%s  warning: %s", w.Job, w.Warning))
	}

	for i := range w.Queues {
		q := &w.Queues[i]

		switch {
		case all, q.Stands:
			lines = append(lines, explainQueue(q, w.At)...)
		case q.Cause == admin.Moves && q.End > 0:
			moving = append(moving, fmt.Sprintf("%s (lag %s)", q.Queue, number(q.Lag())))
		}
	}

	if len(moving) > 0 {
		lines = append(lines, fmt.Sprintf("%s: these move: %s", w.Job, strings.Join(moving, ", ")))
	}

	if len(lines) == 0 && !all {
		lines = []string{w.Job + ": nothing stands"}
	}

	if w.Away > 0 {
		lines = append(lines, fmt.Sprintf("%s: %s were sent back and come again, the first in %s",
			w.Job, plural(int(w.Away), "message"), span(max(w.BackAt.Sub(w.At), 0))))
	}

	return lines
}
