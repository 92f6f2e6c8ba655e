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

	"github.com/millrace/millrace/actors/admin"
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
  millrace dlq ls --broker rocketmq://127.0.0.1:9876
  millrace dlq ls --admin 10.0.0.7:7411`,
		RunE: func(cmd *cobra.Command, args []string) error {
			look, err := f.look(args, f.asJSON)
			if err != nil {
				return err
			}

			return a.withLetters(cmd, f, func(ctx context.Context, d deadLetters) error {
				if f.asJSON {
					return a.jsonLetters(ctx, d, look)
				}

				return a.listLetters(ctx, d, look)
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
			look, err := f.look(args, true)
			if err != nil {
				return err
			}

			return a.withLetters(cmd, f, func(ctx context.Context, d deadLetters) error {
				if f.asJSON {
					return a.jsonLetters(ctx, d, look)
				}

				return d.Visit(ctx, look, func(l *admin.Letter) error {
					_, err := io.WriteString(a.Out, describeLetter(l, time.Now()))

					return err //nolint:wrapcheck // of the output
				})
			})
		},
	}

	f.addList(cmd)

	return cmd
}

func (a *app) jsonLetters(ctx context.Context, d deadLetters, look admin.Look) error {
	out := bufio.NewWriter(a.Out)
	encoder := json.NewEncoder(out)

	err := d.Visit(ctx, look, func(l *admin.Letter) error {
		return encoder.Encode(shownLetter{Shown: l.Shown, Body: bodyText(l.Body())})
	})

	return errors.Join(err, out.Flush())
}

// shownError is how much of an error a line of the list has.
const shownError = 80

func (a *app) listLetters(ctx context.Context, d deadLetters, look admin.Look) error {
	rows := [][]string{{"LETTER", "AGE", "TRIES", "STAGE", "ERROR"}}
	now := time.Now()

	err := d.Visit(ctx, look, func(l *admin.Letter) error {
		old := ""
		if !l.Died.IsZero() {
			old = span(max(now.Sub(l.Died), 0).Truncate(time.Second))
		}

		why, _, _ := strings.Cut(l.Error, "\n")
		why = harmless(why)

		if runes := []rune(why); len(runes) > shownError {
			why = string(runes[:shownError]) + "…"
		}

		if l.Settled {
			why = "(settled) " + why
		}

		rows = append(rows, []string{l.Letter, old, number(l.Tries), l.Stage, why})

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
func describeLetter(l *admin.Letter, now time.Time) string {
	var b strings.Builder

	add := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-8s %s\n", what, fmt.Sprintf(format, args...))
	}
	head := l.Letter

	if !l.Died.IsZero() {
		head += fmt.Sprintf("  dead for %s, since %s", span(now.Sub(l.Died).Truncate(time.Second)), moment(l.Died))
	}

	if l.Settled {
		head += "  (settled)"
	}

	b.WriteString(head + "\n")
	add("message", "%s", wholeName(l))

	if l.Queue != "" {
		add("from", "%s at %s, of topic %s, in group %s", l.Queue, l.Offset, l.Topic, l.Group)
	} else if l.Topic != "" {
		add("from", "topic %s, in group %s", l.Topic, l.Group)
	}

	if l.Stage != "" {
		add("failed", "at %s, on attempt %d", l.Stage, l.Tries)
		add("error", "%s", indent(l.Error))
	} else {
		add("failed", "%s; its consumer has left no word why", plural(l.Tries, "time"))
	}

	for _, one := range l.Attempts {
		add("attempt", "%d  %s  %s: %s", one.Delivery, moment(one.Time), one.Stage, indent(one.Error))
	}

	if l.Replays > 0 {
		add("replayed", "%s before", plural(l.Replays, "time"))
	}

	for _, name := range slices.Sorted(maps.Keys(l.Props)) {
		add("prop", "%s = %s", harmless(name), indent(l.Props[name]))
	}

	if l.Stack != "" {
		add("stack", "%s", indent(l.Stack))
	}

	add("body", "%s", readable(l.Body()))

	return b.String()
}

// moment writes a time, to the second.
func moment(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// wholeName says which message it is.
func wholeName(l *admin.Letter) string {
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
