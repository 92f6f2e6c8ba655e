package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/deadletter"
	"github.com/millrace/millrace/consumer"
)

const (
	// pageLetters and pageBytes bound how many letters are held at once: they are read first and settled afterwards.
	pageLetters = 1000
	pageBytes   = 16 << 20
	// chunkBytes bounds what is settled in one request, beside its number of letters, which goes by the rate.
	chunkLetters = 100
	chunkBytes   = 4 << 20
	// defaultRate is how many letters are replayed a second. A guess: a job takes more, but what has just recovered may not.
	defaultRate = 100
	// chunksPerSecond is how often something is replayed at high rates.
	chunksPerSecond = 5
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
			c, err := choose(f, args)
			if err != nil {
				return err
			}

			return a.withShelf(cmd, f, func(ctx context.Context, s shelf) error {
				w := worker{shelf: s, choice: c, flags: f, settle: f.replay}

				return a.settleAll(ctx, &w, "replayed")
			})
		},
	}

	f.addWhere(cmd)
	f.addReplay(cmd)
	cmd.Flags().BoolVar(&f.again, "again", false, "also the letters named that are settled already")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count them")
	cmd.Flags().Float64Var(&f.rate, "rate", defaultRate, "at most so many letters a `second`; 0 means no limit")

	return cmd
}

// addReplay adds the flags that say where replayed letters go.
func (f *dlqFlags) addReplay(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.to, "to", "", "publish to a `topic` instead of the group's retries")
	cmd.Flags().BoolVar(&f.partial, "failed-channel", false, "take only routes that lead to the channel that failed")
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
			c, err := choose(f, args)
			if err != nil {
				return err
			}

			return a.withShelf(cmd, f, func(ctx context.Context, s shelf) error {
				w := worker{shelf: s, choice: c, flags: f, settle: dropped}

				return a.settleAll(ctx, &w, "dropped")
			})
		},
	}

	f.addWhere(cmd)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count them")
	cmd.Flags().BoolVarP(&f.yes, "yes", "y", false, "do not ask")

	return cmd
}

func dropped(l *deadletter.Letter) (deadletter.Settlement, error) {
	return deadletter.Settlement{Place: l.Place}, nil
}

// replay says where a letter goes.
func (f *dlqFlags) replay(l *deadletter.Letter) (deadletter.Settlement, error) {
	s := deadletter.Settlement{Place: l.Place, Topic: f.to, Message: l.Again()}

	if f.partial {
		channel, _, ok := strings.Cut(l.Cause().Stage, "/")
		if !ok {
			return s, fmt.Errorf("%s does not say where it failed; replay it without --failed-channel", l.Place)
		}

		s.Message.Props[consumer.PropReplayChannel] = channel
	}

	var err error
	if s.Topic == "" {
		s.Topic, err = l.Home()
	}

	return s, err //nolint:wrapcheck // it names the letter
}

// worker settles the letters of a choice.
type worker struct {
	shelf  shelf
	choice choice
	flags  *dlqFlags
	// settle says what to do with a letter.
	settle func(*deadletter.Letter) (deadletter.Settlement, error)

	settled int
	// free is when the next letter may be settled by the rate.
	free time.Time
}

// settleAll settles what is chosen and says how much it was.
func (a *app) settleAll(ctx context.Context, w *worker, done string) error {
	w.choice.by = time.Now()

	if w.flags.rate < 0 {
		return usagef("dlq: --rate is %g; use 0 for no limit", w.flags.rate)
	}

	if w.flags.dryRun || done == "dropped" && !w.flags.yes {
		if ok, err := a.confirm(ctx, w, done); err != nil || !ok {
			return err
		}
	}

	err := w.all(ctx)

	_, _ = fmt.Fprintf(a.Err, "%s %s\n", done, plural(w.settled, "dead letter"))

	return err
}

// confirm counts the letters, and asks whether to go on unless it is a dry run.
func (a *app) confirm(ctx context.Context, w *worker, done string) (bool, error) {
	count := 0

	err := w.choice.visit(ctx, w.shelf, func(l *deadletter.Letter) error {
		if !l.Settled || w.flags.again {
			count++
		}

		return nil
	})
	if err != nil {
		return false, err
	}

	if w.flags.dryRun {
		_, err := fmt.Fprintf(a.Out, "%s would be %s\n", plural(count, "dead letter"), done)

		return false, err //nolint:wrapcheck // of the output
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

// all settles a page of letters after the other: reading and settling take turns at the broker.
func (w *worker) all(ctx context.Context) error {
	places, topics := w.choice.places, w.choice.topics
	c := w.choice
	c.settled = false

	for _, place := range places {
		c.places, c.topics = []deadletter.Place{place}, nil

		if _, err := w.page(ctx, &c); err != nil {
			return err
		}
	}

	for _, topic := range topics {
		c.places, c.topics = nil, []string{topic}

		for {
			if more, err := w.page(ctx, &c); err != nil || !more {
				if err != nil {
					return err
				}

				break
			}
		}
	}

	return nil
}

// page settles the first letters of a choice, and says whether there may be more.
func (w *worker) page(ctx context.Context, c *choice) (more bool, err error) {
	var (
		page []deadletter.Settlement
		size int
	)

	err = c.visit(ctx, w.shelf, func(l *deadletter.Letter) error {
		if l.Settled && !w.flags.again {
			return fmt.Errorf("%s is settled: it has been replayed or dropped; --again replays it nevertheless", l.Place)
		}

		one, err := w.settle(l)
		if err != nil {
			return err
		}

		page = append(page, one)
		size += l.Pipeline().Size()

		if len(page) == pageLetters || size >= pageBytes {
			return errEnough
		}

		return nil
	})
	if more = errors.Is(err, errEnough); err != nil && !more {
		return false, err
	}

	for len(page) > 0 {
		n := w.chunk(page)

		if err := w.pace(ctx, n); err != nil {
			return false, err
		}

		if err := w.shelf.Settle(ctx, page[0].Place.Queue.Topic, page[:n]); err != nil {
			return false, err //nolint:wrapcheck // it says what is wrong
		}

		w.settled += n
		page = page[n:]
	}

	return more, nil
}

// chunk says how many of the page are settled at once.
func (w *worker) chunk(page []deadletter.Settlement) int {
	most := chunkLetters
	if w.flags.rate > 0 {
		most = min(max(int(w.flags.rate/chunksPerSecond), 1), most)
	}

	size := 0

	for i := range page {
		if m := page[i].Message; m != nil {
			size += m.Pipeline().Size()
		}

		if i == most || i > 0 && size > chunkBytes {
			return i
		}
	}

	return len(page)
}

// pace waits until n more letters may be settled.
func (w *worker) pace(ctx context.Context, n int) error {
	if w.flags.rate <= 0 {
		return ctx.Err()
	}

	wait := time.NewTimer(time.Until(w.free))
	defer wait.Stop()

	select {
	case <-wait.C:
	case <-ctx.Done():
		return ctx.Err()
	}

	w.free = time.Now().Add(time.Duration(float64(n) / w.flags.rate * float64(time.Second)))

	return nil
}
