package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/deadletter"
)

// shownLetter is a dead letter as a line of JSON.
type shownLetter struct {
	deadletter.Shown

	Body json.RawMessage `json:"body"`
}

// bodyText returns a body as JSON: a document as it is, anything else, and a document that is a text, as a text.
func bodyText(body []byte) json.RawMessage {
	if json.Valid(body) && body[0] != '"' {
		return body
	}

	text, _ := json.Marshal(string(body)) //nolint:errchkjson // a text always can be

	return text
}

func (a *app) dlqLsCommand(f *dlqFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls [TOPIC|LETTER]...",
		Short: "List dead letters: where they failed, why, and how long ago",
		Long: `Ls lists the dead letters of topics, by default of all that hold any: the groups' own, and those that
retry.dead_letter of job files names.`,
		Example: `  millrace dlq ls
  millrace dlq ls payments-dead --where 'error contains "timeout" && age < duration("1h")'
  millrace dlq ls --broker rocketmq://127.0.0.1:9876`,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := choose(f, args)
			if err != nil {
				return err
			}

			return a.withShelf(cmd, f, func(ctx context.Context, s shelf) error {
				if f.asJSON {
					return a.jsonLetters(ctx, s, &c, f.most)
				}

				return a.listLetters(ctx, s, &c, f.most)
			})
		},
	}

	cmd.Args = cobra.ArbitraryArgs
	f.addList(cmd)

	return cmd
}

func (a *app) dlqShowCommand(f *dlqFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "show LETTER|TOPIC...",
		Short: "Show dead letters: the message, its attempts, the error and the stack",
		Example: `  millrace dlq show payments-dead/0/12
  millrace dlq show payments-dead --max 1 --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := choose(f, args)
			if err != nil {
				return err
			}

			return a.withShelf(cmd, f, func(ctx context.Context, s shelf) error {
				if f.asJSON {
					return a.jsonLetters(ctx, s, &c, f.most)
				}

				return c.VisitMost(ctx, s, f.most, func(l *deadletter.Letter) error {
					_, err := io.WriteString(a.Out, describeLetter(l, time.Now()))

					return err //nolint:wrapcheck // of the output
				})
			})
		},
	}

	f.addList(cmd)

	return cmd
}

func (a *app) jsonLetters(ctx context.Context, s shelf, c *deadletter.Choice, most int) error {
	if err := orEverything(ctx, c, s); err != nil {
		return err
	}

	out := bufio.NewWriter(a.Out)
	encoder := json.NewEncoder(out)

	err := c.VisitMost(ctx, s, most, func(l *deadletter.Letter) error {
		return encoder.Encode(shownLetter{Shown: l.Show(), Body: bodyText(l.Body)})
	})

	return errors.Join(err, out.Flush())
}

// shownError is how much of an error a line of the list has.
const shownError = 80

func (a *app) listLetters(ctx context.Context, s shelf, c *deadletter.Choice, most int) error {
	if err := orEverything(ctx, c, s); err != nil {
		return err
	}

	rows := [][]string{{"LETTER", "AGE", "TRIES", "STAGE", "ERROR"}}

	err := c.VisitMost(ctx, s, most, func(l *deadletter.Letter) error {
		cause := l.Cause()
		old := ""

		if !cause.Time.IsZero() {
			old = span(age(cause).Truncate(time.Second))
		}

		why, _, _ := strings.Cut(cause.Error, "\n")
		why = harmless(why)

		if runes := []rune(why); len(runes) > shownError {
			why = string(runes[:shownError]) + "…"
		}

		if l.Settled {
			why = "(settled) " + why
		}

		rows = append(rows, []string{l.Place.String(), old, number(cause.Deliveries), cause.Stage, why})

		return nil
	})
	if err != nil {
		return err //nolint:wrapcheck // it says what is wrong
	}

	text := table(rows)
	if len(rows) == 1 {
		text = "no dead letters\n"
	}

	_, err = io.WriteString(a.Out, text)

	return err //nolint:wrapcheck // of the output
}

// describeLetter says all that there is to know of a letter.
func describeLetter(l *deadletter.Letter, now time.Time) string {
	var b strings.Builder

	c := l.Cause()
	add := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s %s\n", what, fmt.Sprintf(format, args...))
	}
	head := l.Place.String()

	if !c.Time.IsZero() {
		head += fmt.Sprintf("  dead for %s, since %s", span(now.Sub(c.Time).Truncate(time.Second)), moment(c.Time))
	}

	if l.Settled {
		head += "  (settled)"
	}

	b.WriteString(head + "\n")
	add("message", "%s", wholeName(l))

	if from := l.Props[consumer.PropOriginQueue]; from != "" {
		add("from", "%s at %s, of topic %s, in group %s", from, l.Props[consumer.PropOriginOffset], l.Topic(), c.Group)
	} else if l.Topic() != "" {
		add("from", "topic %s, in group %s", l.Topic(), c.Group)
	}

	if c.Stage != "" {
		add("failed", "at %s, on attempt %d", c.Stage, c.Deliveries)
		add("error", "%s", indent(c.Error))
	} else {
		add("failed", "%s; its consumer has left no word why", plural(c.Deliveries, "time"))
	}

	for _, one := range c.Attempts {
		add("attempt", "%d  %s  %s: %s", one.Delivery, moment(one.Time), one.Stage, indent(one.Error))
	}

	if n := l.Replays(); n > 0 {
		add("replayed", "%s before", plural(n, "time"))
	}

	own := l.OwnProps()
	for _, name := range slices.Sorted(maps.Keys(own)) {
		add("prop", "%s = %s", harmless(name), indent(own[name]))
	}

	if c.Stack != "" {
		add("stack", "%s", indent(c.Stack))
	}

	add("body", "%s", readable(l.Body))

	return b.String()
}

// moment writes a time, to the second.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wholeName says which message it is.
func wholeName(l *deadletter.Letter) string {
	text := l.ID
	if l.Key != "" {
		text += "  key " + l.Key
	}

	if l.Tag != "" {
		text += "  tag " + l.Tag
	}

	return harmless(text) + "  born " + moment(l.Born)
}

// indent puts the further lines of a text below its first.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(harmless(text), "\n"), "\n", "\n           ")
}

// harmless returns a text without what a terminal takes for commands: it may come from anywhere.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}

		return r
	}, text)
}

func isControl(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }

// readable returns a body as text; one that is none is quoted.
func readable(body []byte) string {
	if !utf8.Valid(body) || strings.ContainsFunc(string(body), isControl) {
		return fmt.Sprintf("%q", body)
	}

	return indent(string(body))
}
