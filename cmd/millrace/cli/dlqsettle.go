package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/consumer/deadletter"
)

func (a *app) dlqReplayCommand(f *dlqFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "replay LETTER|TOPIC...",
		Short: "Give dead letters to their jobs again",
		Long: `Replay publishes the messages of dead letters again, with their ids, to the retry topic of the group that they
failed in: the job begins with them from its first stage, as on a first attempt, and no other group gets them. With --to they go
to a topic, and so to all of its groups.

With --failed-channel the stages before run again too, since a dead letter is the message as it was published, but of the routes
only those are taken that lead to the channel that failed, and on from there: sinks beside that way do not get it twice.

It ends with the letters that were there when it began: what fails again becomes a new dead letter. A letter is settled as soon as
it is published; a replay that is broken off between the two publishes up to 100 of them twice when it is called again.`,
		Example: `  millrace dlq replay payments-dead/0/12
  millrace dlq replay payments-dead --where 'stage == "write/sink"' --rate 20
  millrace dlq replay payments-dead --dry-run`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.pick(args)
			if err != nil {
				return err
			}

			if f.rate < 0 {
				return usagef("dlq: --rate is %g; use 0 for no limit", f.rate)
			}

			return a.withLetters(cmd, f, func(ctx context.Context, d deadLetters) error {
				r := admin.Replay{
					Settling: admin.Settling{Pick: p, DryRun: f.dryRun, By: time.Now()},
					To:       f.replay.To, FailedChannel: f.replay.FailedChannel, Again: f.again, Rate: &f.rate,
				}

				n, err := d.Replay(ctx, r)

				return a.settled(f, "replayed", n, err)
			})
		},
	}

	f.addWhere(cmd)
	f.addReplay(cmd)
	cmd.Flags().BoolVar(&f.again, "again", false, "also the letters named that are settled already")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count them")
	cmd.Flags().Float64Var(&f.rate, "rate", deadletter.DefaultRate, "at most so many letters a `second`; 0 means no limit")

	return cmd
}

// addReplay adds the flags that say where replayed letters go.
func (f *dlqFlags) addReplay(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.replay.To, "to", "", "publish to a `topic` instead of the group's retries")
	cmd.Flags().BoolVar(&f.replay.FailedChannel, "failed-channel", false, "take only routes that lead to the channel that failed")
	cmd.MarkFlagsMutuallyExclusive("to", "failed-channel")
}

func (a *app) dlqDropCommand(f *dlqFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "drop LETTER|TOPIC...",
		Short: "Settle dead letters without replaying them",
		Long: `Drop makes dead letters count as settled: they are not shown and not replayed any more, unless with --all or
--again. It asks before, unless with --yes.`,
		Example: `  millrace dlq drop payments-dead/0/12 --yes
  millrace dlq drop payments-dead --where 'age > duration("720h")'`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := f.pick(args)
			if err != nil {
				return err
			}

			return a.withLetters(cmd, f, func(ctx context.Context, d deadLetters) error {
				s := admin.Settling{Pick: p, DryRun: f.dryRun, By: time.Now()}

				if !f.dryRun && !f.yes {
					if ok, err := a.confirm(ctx, d, s); err != nil || !ok {
						return err
					}
				}

				n, err := d.Drop(ctx, s)

				return a.settled(f, "dropped", n, err)
			})
		},
	}

	f.addWhere(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count them")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")

	return cmd
}

// settled says how many letters were settled, or would be.
func (a *app) settled(f *dlqFlags, done string, n int, err error) error {
	if f.dryRun {
		if err != nil {
			return err
		}

		_, err := fmt.Fprintf(a.Out, "%s would be %s\n", plural(n, "dead letter"), done)

		return err //nolint:wrapcheck // of the output
	}

	_, _ = fmt.Fprintf(a.Err, "%s %s\n", done, plural(n, "dead letter"))

	return hinted(err, "replays")
}

// confirm counts the letters that are to be dropped, and asks whether to go on.
func (a *app) confirm(ctx context.Context, d deadLetters, s admin.Settling) (bool, error) {
	s.DryRun = true

	count, err := d.Drop(ctx, s)
	if err != nil {
		return false, err //nolint:wrapcheck // it says what is wrong
	}

	_, _ = fmt.Fprintf(a.Err, "drop %s? [y/N] ", plural(count, "dead letter"))

	answer, err := bufio.NewReader(a.In).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
		return true, nil
	}

	if err != nil {
		return false, usagef("dlq: nobody says yes; use --yes")
	}

	_, _ = fmt.Fprintln(a.Err, "nothing is dropped")

	return false, nil
}
