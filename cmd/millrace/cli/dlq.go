package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
	"github.com/millrace/millrace/plugins/expression"
)

// shelf is where dead letters lie.
type shelf interface {
	deadletter.Shelf
	// DeadTopics returns the topics that hold dead letters.
	DeadTopics(ctx context.Context) ([]string, error)
}

var _ shelf = (*control.Client)(nil)

const dlqText = `Dlq lists, shows, edits, replays and drops dead letters: messages that were rejected or have failed on their last
attempt. It works beside running jobs.

A LETTER is named TOPIC/QUEUE/OFFSET, as dlq ls writes it; a TOPIC means all letters in it. --where keeps those that an expression
says yes to. Beside the names of messages (id, key, tag, text, props, born, body) it knows stage and channel (where the message
failed), error, stack, group, topic (where it was first published), attempts, replays, died (a time) and age (a duration):

  stage == "store/sink" && error contains "refused" && age > duration("10m")

What has been replayed or dropped is remembered in the offsets of the group ` + deadletter.Group + `
and not shown again, unless with --all. Nothing is deleted: retention does that.

On RocketMQ a LETTER is named TOPIC@BROKER/QUEUE/OFFSET, and dlq ls without a TOPIC lists the groups' own dead letters only.
` + clusterText

// dlqFlags are the flags that several of the commands have.
type dlqFlags struct {
	broker, where string
	all, asJSON   bool
	most          int
	replay        deadletter.Replay
	rate          float64
	dryRun, yes   bool
	again         bool
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

// withShelf calls use with the dead letters of the broker.
func (a *app) withShelf(cmd *cobra.Command, f *dlqFlags, use func(context.Context, shelf) error) error {
	return a.withStation(cmd.Context(), f.broker, func(ctx context.Context, s station) error { return use(ctx, s) })
}

// choose reads the arguments of a command.
func choose(f *dlqFlags, args []string) (deadletter.Choice, error) {
	c := deadletter.Choice{Settled: f.all || f.again}

	for _, arg := range args {
		if place, ok := deadletter.ParsePlace(arg); ok {
			c.Places = append(c.Places, place)
		} else {
			c.Topics = append(c.Topics, arg)
		}
	}

	if f.most < 0 {
		return c, usagef("dlq: --max is %d; use 0 for all", f.most)
	}

	if f.where == "" {
		return c, nil
	}

	where, err := expression.ParseConditionOn(f.where, names(&deadletter.Letter{}))
	if err != nil {
		return c, usagef("dlq: --where: %w", err)
	}

	var scope expression.Scope

	c.Holds = func(l *deadletter.Letter) (bool, error) {
		scope.Reset(l.Pipeline())
		scope.Know(names(l))

		holds, err := where.Holds(&scope)
		if err != nil {
			return false, fmt.Errorf("--where does not suit %s: %w", l.Place, err)
		}

		return holds, nil
	}

	return c, nil
}

// names returns what an expression knows of a letter.
func names(l *deadletter.Letter) expression.Names {
	cause := l.Cause()
	channel, _, _ := strings.Cut(cause.Stage, "/")

	return expression.Names{
		"stage": cause.Stage, "channel": channel, "error": cause.Error, "stack": cause.Stack, "group": cause.Group,
		"topic": l.Topic(), "attempts": cause.Deliveries, "replays": l.Replays(),
		"died": cause.Time, "age": age(cause),
	}
}

// age is how long a letter has been dead; 0 when that is not known.
func age(c consumer.Cause) time.Duration {
	if c.Time.IsZero() {
		return 0
	}

	return max(time.Since(c.Time), 0)
}

// orEverything names the topics of dead letters where nothing is named.
func orEverything(ctx context.Context, c *deadletter.Choice, s shelf) (err error) {
	if len(c.Places)+len(c.Topics) == 0 {
		c.Topics, err = s.DeadTopics(ctx)
	}

	return err //nolint:wrapcheck // it says what is wrong
}

// hinted adds to an error what lets a settled letter be settled again.
func hinted(err error, does string) error {
	if settled, ok := errors.AsType[*deadletter.SettledError](err); ok {
		return fmt.Errorf("%w; --again %s it nevertheless", settled, does)
	}

	return err
}
