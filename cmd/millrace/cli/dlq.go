package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/actors/admin"
	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer/deadletter"
)

// deadLetters are what the commands work on: those at a broker, or those at an endpoint.
type deadLetters interface {
	// Visit calls visit with dead letters, until the end or an error, which it returns.
	Visit(ctx context.Context, look admin.Look, visit func(*admin.Letter) error) error
	// Replay publishes dead letters again, and Drop settles them without that. They return how many, also when they fail.
	Replay(ctx context.Context, r admin.Replay) (int, error)
	Drop(ctx context.Context, s admin.Settling) (int, error)
	// Edit replays a changed dead letter, unless nothing has changed.
	Edit(ctx context.Context, e admin.Edit) (changed bool, err error)
}

var (
	_ deadLetters = admin.LettersThere{}
	_ deadLetters = (*admin.DeadLetters)(nil)
)

const dlqText = `Dlq lists, shows, edits, replays and drops dead letters: messages that were rejected or have failed on their last
attempt. It works beside running jobs.

A LETTER is named TOPIC/QUEUE/OFFSET, as dlq ls writes it; a TOPIC means all letters in it. --where keeps those that an expression
says yes to. Beside the names of messages (id, key, tag, text, props, born, body) it knows stage and channel (where the message
failed), error, stack, group, topic (where it was first published), attempts, replays, died (a time) and age (a duration):

  stage == "store/sink" && error contains "refused" && age > duration("10m")

What has been replayed or dropped is remembered in the offsets of the group ` + deadletter.Group + `
and not shown again, unless with --all. Nothing is deleted: retention does that.

With --admin HOST:PORT the running job is asked instead of its broker, by its admin endpoint. The token of that is taken from the
variable MILLRACE_ADMIN_TOKEN, or from the file that --admin-token-file names.

On RocketMQ a LETTER is named TOPIC@BROKER/QUEUE/OFFSET, and dlq ls without a TOPIC lists the groups' own dead letters only.
` + clusterText

// dlqFlags are the flags that several of the commands have.
type dlqFlags struct {
	askedFlags

	where       string
	all, asJSON bool
	most        int
	replay      deadletter.Replay
	rate        float64
	dryRun, yes bool
	again       bool
}

func (a *app) dlqCommand() *cobra.Command {
	var f dlqFlags

	cmd := &cobra.Command{
		Use:     "dlq",
		Short:   "List, show, edit, replay and drop dead letters",
		Long:    dlqText,
		GroupID: groupBroker,
		Args:    cobra.ArbitraryArgs,
		RunE:    unknownCommand,
	}

	cmd.PersistentFlags().StringVarP(&f.broker, brokerFlag, "b", defaultBroker, stationHelp)
	f.addAdmin(cmd.PersistentFlags())
	cmd.AddCommand(a.dlqLsCommand(&f), a.dlqShowCommand(&f), a.dlqReplayCommand(&f), a.dlqEditCommand(&f), a.dlqDropCommand(&f))

	return cmd
}

func (f *dlqFlags) addWhere(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&f.where, "where", "w", "", "only the letters that an `expression` says yes to")
}

func (f *dlqFlags) addList(cmd *cobra.Command) {
	f.addWhere(cmd)
	cmd.Flags().BoolVarP(&f.all, "all", "a", false, "settled letters too: those that were replayed or dropped")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "write each letter as a line of JSON")
	cmd.Flags().IntVarP(&f.most, "max", "n", 0, "end after so `many` letters; 0 means all")
}

// withLetters calls use with the dead letters of the broker, or with those at the endpoint that is named.
func (a *app) withLetters(cmd *cobra.Command, f *dlqFlags, use func(context.Context, deadLetters) error) error {
	if f.admin == "" && f.tokenFile == "" {
		return a.withStation(cmd.Context(), f.broker, func(ctx context.Context, s station) error {
			return use(ctx, s.DeadLetters())
		})
	}

	jobs, err := a.reach(cmd.Context(), f.askedFlags)
	if err != nil {
		return err
	}

	defer jobs.close()

	ctx, stop := a.untilInterrupted(cmd.Context())
	defer stop()

	return jobs.told(use(ctx, jobs.DeadLetters()))
}

// pick reads the arguments of a command.
func (f *dlqFlags) pick(args []string) (admin.Pick, error) {
	p := admin.Pick{Where: f.where}

	for _, arg := range args {
		if place, ok := deadletter.ParsePlace(arg); ok {
			p.Letters = append(p.Letters, place)
		} else {
			p.Topics = append(p.Topics, arg)
		}
	}

	if f.where == "" {
		return p, nil
	}

	if _, err := control.ParseWhere(f.where); err != nil {
		return p, usagef("dlq: --where: %w", err)
	}

	return p, nil
}

// look is pick for what is to be shown.
func (f *dlqFlags) look(args []string, body bool) (admin.Look, error) {
	if f.most < 0 {
		return admin.Look{}, usagef("dlq: --max is %d; use 0 for all", f.most)
	}

	p, err := f.pick(args)

	return admin.Look{Pick: p, Settled: f.all, Body: body, Max: f.most}, err
}

// hinted adds to an error what lets a settled letter be settled again.
func hinted(err error, does string) error {
	if settled, ok := errors.AsType[*deadletter.SettledError](err); ok {
		return fmt.Errorf("%w; --again %s it nevertheless", settled, does)
	}

	return err
}
