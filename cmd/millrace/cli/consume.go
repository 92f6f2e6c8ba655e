package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/pipeline"
)

// consumeFlags are the flags of consume.
type consumeFlags struct {
	broker, from   string
	follow, asJSON bool
	most           int
}

// shownMessage is a message as one line of JSON.
type shownMessage struct {
	Queue  string            `json:"queue,omitempty"`
	Offset *int64            `json:"offset,omitempty"`
	ID     string            `json:"id,omitempty"`
	Topic  string            `json:"topic,omitempty"`
	Key    string            `json:"key,omitempty"`
	Tag    string            `json:"tag,omitempty"`
	Props  map[string]string `json:"props,omitempty"`
	Born   time.Time         `json:"born,omitzero"`
	Body   json.RawMessage   `json:"body"`
}

func (a *app) consumeCommand() *cobra.Command {
	var f consumeFlags

	cmd := &cobra.Command{
		Use:     "consume TOPIC",
		Short:   "Write the messages of a topic to the output",
		GroupID: groupBroker,
		Long: `Consume writes the body of each message as a line, one queue after the other, up to the present end of the
topic; with --follow it goes on with what is published, until ^C. It reads beside the groups that work on the topic and moves
none of them.

--from is first, last, an offset, a time such as 2026-01-31T12:00:00Z, or how long ago, such as 90m.

` + clusterText,
		Example: `  millrace consume alerts
  millrace consume quakes-dead --json --max 10
  millrace consume alerts --from last --follow
  millrace consume alerts --from 10m --broker rocketmq://127.0.0.1:9876`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			from, err := control.ParsePosition(f.from)
			if err != nil {
				return usagef("consume: --from: %w", err)
			}

			if f.most < 0 {
				return usagef("consume: --max is %d; use 0 for all", f.most)
			}

			return a.withStation(cmd.Context(), f.broker, func(ctx context.Context, s station) error {
				return a.consume(ctx, s, control.Read{Topic: args[0], From: from, Follow: f.follow}, f)
			})
		},
	}

	cmd.Flags().StringVarP(&f.broker, brokerFlag, "b", defaultBroker, stationHelp)
	cmd.Flags().StringVar(&f.from, "from", "first", "where to begin in each queue: a `position`")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what is published later")
	cmd.Flags().BoolVar(&f.asJSON, "json", false, "write all of a message, as a line of JSON")
	cmd.Flags().IntVarP(&f.most, "max", "n", 0, "end after so `many` messages; 0 means all")

	return cmd
}

// errEnough ends a read.
var errEnough = errors.New("enough")

func (a *app) consume(ctx context.Context, c traffic, r control.Read, f consumeFlags) error {
	out := bufio.NewWriter(a.Out)
	seen := 0

	err := c.Read(ctx, r, func(m *control.Message) error {
		line := m.Body

		if f.asJSON {
			var err error
			if line, err = json.Marshal(show(r.Topic, m)); err != nil {
				return fmt.Errorf("consume: %w", err)
			}
		}

		_, _ = out.Write(line)

		if err := out.WriteByte('\n'); err != nil {
			return fmt.Errorf("consume: %w", err)
		}

		seen++
		if seen == f.most {
			return errEnough
		}

		if r.Follow {
			return out.Flush()
		}

		return nil
	})

	if errors.Is(err, errEnough) || ctx.Err() != nil {
		err = nil
	}

	if err != nil && seen == 0 {
		err = whetherTopic(ctx, c, r.Topic, err, "")
	}

	return errors.Join(err, out.Flush())
}

// show returns a message as it is shown. A body that is not JSON is text in it.
func show(topic string, m *control.Message) shownMessage {
	offset := int64(m.Offset)
	s := shownMessage{
		Queue: pipeline.Queue{Topic: topic, Broker: m.Broker, ID: m.Queue}.String(), Offset: &offset,
		ID: m.ID, Key: m.Key, Tag: m.Tag, Props: m.Props, Born: m.Born, Body: m.Body,
	}

	if !json.Valid(m.Body) {
		s.Body, _ = json.Marshal(string(m.Body)) //nolint:errchkjson // a text always can be
	}

	return s
}
