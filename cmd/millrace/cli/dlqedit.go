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

	"github.com/millrace/millrace/actors/admin"
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

			edit := admin.Edit{Letter: place, To: f.replay.To, FailedChannel: f.replay.FailedChannel, Again: f.again}

			changed, err := e.change(&edit, cmd.Flags().Changed)
			if err != nil {
				return err
			}

			return a.withLetters(cmd, f, func(ctx context.Context, d deadLetters) error {
				if !changed {
					if err := a.editByHand(ctx, d, &edit); err != nil {
						return err
					}
				}

				return a.editLetter(ctx, d, edit)
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
func (a *app) editLetter(ctx context.Context, d deadLetters, e admin.Edit) error {
	changed, err := d.Edit(ctx, e)
	if err != nil {
		return hinted(err, "edits")
	}

	if !changed {
		_, _ = fmt.Fprintln(a.Err, "nothing has been changed, and nothing is replayed")

		return nil
	}

	_, _ = fmt.Fprintf(a.Err, "replayed %s as changed\n", e.Letter)

	return nil
}

// change takes the changes of the flags over, and says whether there are any.
func (e *editFlags) change(edit *admin.Edit, changed func(string) bool) (some bool, err error) {
	edit.Props, edit.Remove = e.props, e.remove
	some = len(e.props)+len(e.remove) > 0

	if changed("key") {
		edit.Key, some = &e.key, true
	}

	if changed("tag") {
		edit.Tag, some = &e.tag, true
	}

	if changed("body") {
		edit.Text, some = &e.body, true
	}

	if changed("body-file") {
		body, err := os.ReadFile(e.bodyFile)
		if err != nil {
			return false, fmt.Errorf("dlq edit: %w", err)
		}

		some = true
		edit.SetBody(body)
	}

	return some, nil
}

// editByHand lets somebody change a letter in an editor.
func (a *app) editByHand(ctx context.Context, d deadLetters, e *admin.Edit) error {
	editor := strings.Fields(cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")))
	if len(editor) == 0 {
		return usagef("dlq edit: neither VISUAL nor EDITOR is set; set one, or use --body and its like")
	}

	letter, err := oneLetter(ctx, d, e.Letter)

	switch {
	case err != nil:
		return err
	case letter.Settled && !e.Again:
		return hinted(&deadletter.SettledError{Place: e.Letter}, "edits")
	case letter.Redacted:
		return fmt.Errorf("the body of %s has a secret in it that is not shown, which an editor would spoil; use --body-file",
			e.Letter)
	case !utf8.Valid(letter.Body()):
		return fmt.Errorf("the body of %s is no text, which an editor would spoil; use --body-file", e.Letter)
	}

	before := editable{Key: letter.Key, Tag: letter.Tag, Props: letter.Props, Body: bodyText(letter.Body())}

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

	after.change(&before, e)

	return nil
}

// oneLetter returns a letter with its body.
func oneLetter(ctx context.Context, d deadLetters, at deadletter.Place) (letter *admin.Letter, err error) {
	look := admin.Look{Pick: admin.Pick{Letters: []deadletter.Place{at}}, Settled: true, Body: true}

	err = d.Visit(ctx, look, func(l *admin.Letter) error {
		letter = l

		return nil
	})
	if err == nil && letter == nil {
		err = &deadletter.UnknownLetterError{Place: at}
	}

	return letter, err
}

// change adds to an edit what has changed. A document that only looks different is left as it is.
func (e *editable) change(before *editable, edit *admin.Edit) {
	if e.Key != before.Key {
		edit.Key = &e.Key
	}

	if e.Tag != before.Tag {
		edit.Tag = &e.Tag
	}

	var was, is bytes.Buffer
	if json.Compact(&was, before.Body) != nil || json.Compact(&is, e.Body) != nil || !bytes.Equal(was.Bytes(), is.Bytes()) {
		body := []byte(e.Body)

		var text string
		if json.Unmarshal(e.Body, &text) == nil {
			body = []byte(text)
		}

		edit.SetBody(body)
	}

	edit.Props = make(map[string]string)

	for name, value := range e.Props {
		if was, ok := before.Props[name]; !ok || was != value {
			edit.Props[name] = value
		}
	}

	for name := range before.Props {
		if _, ok := e.Props[name]; !ok {
			edit.Remove = append(edit.Remove, name)
		}
	}
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
