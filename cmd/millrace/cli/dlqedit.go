package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/consumer/deadletter"
)

// editFlags are the changes that edit makes by itself.
type editFlags struct {
	body, bodyFile, key, tag string
	props                    map[string]string
	remove                   []string
}

// editable is what of a letter can be changed.
type editable struct {
	Key   string            `json:"key"`
	Tag   string            `json:"tag"`
	Props map[string]string `json:"props"`
	Body  json.RawMessage   `json:"body"`
}

func (a *app) dlqEditCommand(f *dlqFlags) *cobra.Command {
	var e editFlags

	cmd := &cobra.Command{
		Use:   "edit LETTER",
		Short: "Change the message of a dead letter, then replay it",
		Long: `Edit changes key, tag, properties or body of a dead letter's message and replays it, as dlq replay does. Without
flags that say what to change it opens $VISUAL or $EDITOR with the message as JSON: a body that is text is a text there, any other
is the JSON document itself. When nothing has been changed nothing is replayed.`,
		Example: `  millrace dlq edit payments-dead/0/12
  millrace dlq edit payments-dead/0/12 --body '{"account":"DE3","amount":7}'
  millrace dlq edit payments-dead/0/12 --key DE3 --prop source=mended --remove-prop broken`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			place, ok := deadletter.ParsePlace(args[0])
			if !ok {
				return usagef("dlq edit: %q is no letter; name one as dlq ls does, TOPIC/QUEUE/OFFSET", args[0])
			}

			return a.withShelf(cmd, f, func(ctx context.Context, s shelf) error {
				return a.editLetter(ctx, s, f, place, func(l *deadletter.Letter) error {
					if cmd.Flags().Changed("body") || cmd.Flags().Changed("body-file") || cmd.Flags().Changed("key") ||
						cmd.Flags().Changed("tag") || cmd.Flags().Changed("prop") || cmd.Flags().Changed("remove-prop") {
						return e.change(l, cmd.Flags().Changed)
					}

					return a.editByHand(ctx, l)
				})
			})
		},
	}

	cmd.Flags().StringVar(&e.body, "body", "", "the new body")
	cmd.Flags().StringVar(&e.bodyFile, "body-file", "", "a `file` with the new body")
	cmd.Flags().StringVarP(&e.key, "key", "k", "", "the new key")
	cmd.Flags().StringVarP(&e.tag, "tag", "t", "", "the new tag")
	cmd.Flags().StringToStringVarP(&e.props, "prop", "p", nil, "a property to set, as `name=value`; may be repeated")
	cmd.Flags().StringSliceVar(&e.remove, "remove-prop", nil, "the `name` of a property to remove; may be repeated")
	cmd.MarkFlagsMutuallyExclusive("body", "body-file")
	f.addReplay(cmd)
	cmd.Flags().BoolVar(&f.again, "again", false, "also a letter that is settled already")

	return cmd
}

// editLetter changes one letter and replays it.
func (a *app) editLetter(
	ctx context.Context, s shelf, f *dlqFlags, place deadletter.Place, change func(*deadletter.Letter) error,
) error {
	changed, err := deadletter.Replace(ctx, s, place, f.again, f.replay, change)
	if err != nil {
		return hinted(err, "edits")
	}

	if !changed {
		_, _ = fmt.Fprintln(a.Err, "nothing has been changed, and nothing is replayed")

		return nil
	}

	_, _ = fmt.Fprintf(a.Err, "replayed %s as changed\n", place)

	return nil
}

// change makes the changes of the flags.
func (e *editFlags) change(l *deadletter.Letter, changed func(string) bool) error {
	edit := deadletter.Edit{Props: e.props, Remove: e.remove}

	if changed("key") {
		edit.Key = &e.key
	}

	if changed("tag") {
		edit.Tag = &e.tag
	}

	if changed("body") {
		body := []byte(e.body)
		edit.Body = &body
	}

	if changed("body-file") {
		body, err := os.ReadFile(e.bodyFile)
		if err != nil {
			return fmt.Errorf("dlq edit: %w", err)
		}

		edit.Body = &body
	}

	if err := edit.Apply(l); err != nil {
		return usagef("dlq edit: %w", err)
	}

	return nil
}

// editByHand lets somebody change a letter in an editor.
func (a *app) editByHand(ctx context.Context, l *deadletter.Letter) error {
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(editor) == 0 {
		return usagef("dlq edit: neither VISUAL nor EDITOR is set; set one, or use --body and its like")
	}

	if !utf8.Valid(l.Body) {
		return fmt.Errorf("the body of %s is no text, which an editor would spoil; use --body-file", l.Place)
	}

	before := editable{Key: l.Key, Tag: l.Tag, Props: l.OwnProps(), Body: bodyText(l.Body)}

	text, err := json.MarshalIndent(before, "", "  ")
	if err != nil {
		return fmt.Errorf("dlq edit: %w", err)
	}

	text, err = a.throughEditor(ctx, editor, append(text, '\n'))
	if err != nil {
		return err
	}

	var after editable

	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&after); err != nil {
		return fmt.Errorf("what the editor left is no message, and nothing is replayed: %w", err)
	}

	after.apply(&before, l)

	return nil
}

// apply takes what has changed over to a letter. A document that only looks different is left as it is.
func (e *editable) apply(before *editable, l *deadletter.Letter) {
	l.Key, l.Tag = e.Key, e.Tag

	var was, is bytes.Buffer
	if json.Compact(&was, before.Body) != nil || json.Compact(&is, e.Body) != nil || !bytes.Equal(was.Bytes(), is.Bytes()) {
		l.Body = e.Body

		var text string
		if json.Unmarshal(e.Body, &text) == nil {
			l.Body = []byte(text)
		}
	}

	props := make(map[string]string)

	for name, value := range l.Props {
		if strings.HasPrefix(name, "millrace.") {
			props[name] = value
		}
	}

	for name, value := range e.Props {
		if !strings.HasPrefix(name, "millrace.") {
			props[name] = value
		}
	}

	l.Props = props
}

// throughEditor returns a text as somebody has left it in an editor.
func (a *app) throughEditor(ctx context.Context, editor []string, text []byte) (after []byte, err error) {
	file, err := os.CreateTemp("", "millrace-*.json") // which nobody else can read
	if err != nil {
		return nil, fmt.Errorf("dlq edit: %w", err)
	}

	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()

	if _, err := file.Write(text); err != nil {
		return nil, errors.Join(fmt.Errorf("dlq edit: %w", err), file.Close())
	}

	if err := file.Close(); err != nil {
		return nil, fmt.Errorf("dlq edit: %w", err)
	}

	command := exec.CommandContext(ctx, editor[0], append(editor[1:], file.Name())...) //nolint:gosec // the user's own editor
	command.Stdin, command.Stdout, command.Stderr = a.In, a.Out, a.Err

	if err := command.Run(); err != nil {
		return nil, fmt.Errorf("dlq edit: the editor %s: %w; nothing is replayed", editor[0], err)
	}

	after, err = os.ReadFile(file.Name())
	if err != nil {
		return nil, fmt.Errorf("dlq edit: %w", err)
	}

	return after, nil
}
