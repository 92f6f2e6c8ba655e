package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/control"
)

// produceFlags are the flags of produce.
type produceFlags struct {
	broker, key, tag string
	props            map[string]string
	asJSON, create   bool
}

// How many messages, and about how many bytes, are published at once.
const (
	produceMessages = 500
	produceBytes    = 1 << 20
	longestLine     = 16 << 20
)

func (a *app) produceCommand() *cobra.Command {
	var f produceFlags

	cmd := &cobra.Command{
		Use:     "produce TOPIC [FILE]...",
		Short:   "Publish lines of the input, or of files, to a topic",
		GroupID: groupBroker,
		Long: `Produce publishes each line as the body of a message, and says how many there were. What has been read is published
as soon as no more is there, so that it can stand at the end of a pipe. Empty lines are left out.

With --json each line is a message as consume --json writes it: {"key": …, "tag": …, "props": {…}, "body": …}, where a body
that is text is taken as it is and any other is the JSON document itself.

A topic that is not there is a mistake, since a name is mistyped more easily than a topic forgotten; --create makes it, and
the embedded broker where there is none.

It works beside running jobs; see run.

` + clusterText,
		Example: `  echo '{"mag": 6.1}' | millrace produce quakes --key us2000d3km --tag major --create
  millrace produce quakes quakes.jsonl
  millrace consume quakes --json | millrace produce copies --json
  millrace produce quakes quakes.jsonl --broker rocketmq://127.0.0.1:9876`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.create {
				if err := a.ensureTopic(cmd.Context(), f.broker, args[0]); err != nil {
					return err
				}
			}

			return a.withStation(cmd.Context(), f.broker, func(ctx context.Context, s station) error {
				return a.produce(ctx, s, args[0], args[1:], f)
			})
		},
	}

	cmd.Flags().StringVarP(&f.broker, brokerFlag, "b", defaultBroker, stationHelp)
	cmd.Flags().StringVarP(&f.key, "key", "k", "", "the key of each message")
	cmd.Flags().StringVarP(&f.tag, "tag", "t", "", "the tag of each message")
	cmd.Flags().StringToStringVarP(&f.props, "prop", "p", nil, "a property of each message, as `name=value`; may be repeated")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "the lines are messages, not bodies")
	cmd.Flags().BoolVar(&f.create, "create", false, "make the topic when it is missing")

	return cmd
}

func (a *app) produce(ctx context.Context, c traffic, topic string, files []string, f produceFlags) error {
	p := &producer{client: c, topic: topic, flags: f}

	if len(files) == 0 {
		files = []string{stdin}
	}

	for _, name := range files {
		if err := a.produceFile(ctx, p, name); err != nil {
			if p.published == 0 {
				return err
			}

			return errors.Join(err, p.tell(a.Err))
		}
	}

	return p.tell(a.Err)
}

func (a *app) produceFile(ctx context.Context, p *producer, name string) error {
	if name == stdin {
		return p.lines(ctx, a.In, "the input")
	}

	file, err := os.Open(name) //nolint:gosec // the path comes from the operator
	if err != nil {
		return fmt.Errorf("produce: %w", err)
	}

	return errors.Join(p.lines(ctx, file, name), file.Close())
}

// producer publishes lines to a topic.
type producer struct {
	client traffic
	topic  string
	flags  produceFlags

	batch     []control.Message
	size      int
	published int
}

// lines publishes the lines of a file.
func (p *producer) lines(ctx context.Context, from io.Reader, name string) error {
	r := bufio.NewReaderSize(from, 64<<10)

	for number := 1; ; number++ {
		line, err := readLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("%s:%d: %w", name, number, err), p.flush(ctx))
		}

		if len(line) > 0 {
			m, wrong := p.message(line)
			if wrong != nil {
				return errors.Join(fmt.Errorf("%s:%d: %w", name, number, wrong), p.flush(ctx))
			}

			p.batch = append(p.batch, m)
			p.size += len(m.Body)
		}

		if err != nil || r.Buffered() == 0 || len(p.batch) >= produceMessages || p.size >= produceBytes {
			if err := p.flush(ctx); err != nil {
				return err
			}
		}

		if err != nil {
			return nil //nolint:nilerr // it is the end of the file
		}
	}
}

// readLine returns a line without its end. The last one comes with io.EOF.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte

	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)

		if errors.Is(err, bufio.ErrBufferFull) {
			if len(line) > longestLine {
				return nil, fmt.Errorf("the line has more than %d bytes, which is the most", longestLine)
			}

			continue
		}

		return bytes.TrimRight(line, "\r\n"), err
	}
}

// message makes a message of a line.
func (p *producer) message(line []byte) (control.Message, error) {
	m := control.Message{Key: p.flags.key, Tag: p.flags.tag, Props: p.flags.props, Body: line}
	if !p.flags.asJSON {
		return m, nil
	}

	var shown shownMessage

	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()

	if err := decoder.Decode(&shown); err != nil {
		return m, fmt.Errorf("the line is no message: %s; it should be like {\"key\": …, \"body\": …}",
			strings.TrimPrefix(err.Error(), "json: "))
	}

	m.ID, m.Born, m.Body = shown.ID, shown.Born, shown.Body

	var text string
	if json.Unmarshal(shown.Body, &text) == nil {
		m.Body = []byte(text)
	}

	if shown.Key != "" {
		m.Key = shown.Key
	}

	if shown.Tag != "" {
		m.Tag = shown.Tag
	}

	if shown.Props != nil {
		m.Props = shown.Props
	}

	return m, nil
}

func (p *producer) flush(ctx context.Context) error {
	if len(p.batch) == 0 {
		return nil
	}

	if err := p.client.Publish(ctx, p.topic, p.batch); err != nil {
		return whetherTopic(ctx, p.client, p.topic, err, " (--create makes it)")
	}

	p.published += len(p.batch)
	p.batch, p.size = p.batch[:0], 0

	return nil
}

// tell says how many messages are in the topic now.
func (p *producer) tell(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "published %s to %s\n", plural(p.published, "message"), p.topic); err != nil {
		return fmt.Errorf("produce: %w", err)
	}

	return nil
}
