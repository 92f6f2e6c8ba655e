package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

func (a *app) topicsCommand() *cobra.Command {
	var (
		broker      string
		all, asJSON bool
	)

	cmd := &cobra.Command{
		Use:     "topics",
		Short:   "List topics, or make one",
		GroupID: groupBroker,
		Long:    "Topics lists topics with how many queues and messages they have.\n\n" + clusterText,
		Example: `  millrace topics
  millrace topics create quakes --queues 8
  millrace topics --broker rocketmq://127.0.0.1:9876`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withStation(cmd.Context(), broker, func(ctx context.Context, s station) error {
				topics, err := s.Topics(ctx, all)
				if err != nil {
					return err //nolint:wrapcheck // it says what is wrong
				}

				if asJSON {
					return a.encode(shownTopics(topics))
				}

				_, err = io.WriteString(a.Out, topicTable(topics))

				return err //nolint:wrapcheck // of the output
			})
		},
	}

	cmd.PersistentFlags().StringVarP(&broker, brokerFlag, "b", defaultBroker, stationHelp)
	cmd.Flags().BoolVar(&all, "all", false, "list also the topics in which groups keep their retries")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")

	create := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Make a topic",
		Long: `Create makes a topic, and the embedded broker where there is none. A topic that is there with as many queues is
left as it is. Messages of one key are in one queue; the number of queues bounds how many members of a group share the work. On
RocketMQ each broker of the cluster gets as many queues.`,
		Example: "  millrace topics create quakes --queues 8 --broker data\n" +
			"  millrace topics create quakes --queues 8 --broker rocketmq://127.0.0.1:9876",
		Args: cobra.ExactArgs(1),
	}
	queues := create.Flags().Int("queues", newTopicQueues, "how many `queues` it has")
	create.RunE = func(cmd *cobra.Command, args []string) error {
		return a.createTopic(cmd.Context(), broker, args[0], *queues)
	}

	cmd.AddCommand(create)

	return cmd
}

func (a *app) createTopic(ctx context.Context, broker, topic string, queues int) error {
	return a.withNewStation(ctx, broker, func(ctx context.Context, s station) error {
		if err := s.CreateTopic(ctx, topic, queues); err != nil {
			return err //nolint:wrapcheck // it says what is wrong
		}

		_, _ = fmt.Fprintf(a.Err, "topic %s has %s\n", topic, plural(queues, "queue"))

		return nil
	})
}

// ensureTopic makes a topic that is missing, and tells so. One that is there stays as it is.
func (a *app) ensureTopic(ctx context.Context, broker, topic string) error {
	return a.withNewStation(ctx, broker, func(ctx context.Context, s station) error {
		names, err := s.TopicNames(ctx)
		if err != nil || slices.Contains(names, topic) {
			return err //nolint:wrapcheck // it says what is wrong
		}

		if err := s.CreateTopic(ctx, topic, newTopicQueues); err != nil {
			return err //nolint:wrapcheck // as above
		}

		_, _ = fmt.Fprintf(a.Err, "made topic %s with %s\n", topic, plural(newTopicQueues, "queue"))

		return nil
	})
}

// encode writes a value as JSON.
func (a *app) encode(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetIndent("", "  ")

	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("the output: %w", err)
	}

	return nil
}

// shownTopic is a topic as it is written for scripts.
type shownTopic struct {
	Topic  string       `json:"topic"`
	Queues []shownQueue `json:"queues"`
}

// shownQueue is a queue that holds messages from First to, and without, End. RocketMQ does not say how many bytes.
type shownQueue struct {
	Queue string          `json:"queue"`
	First pipeline.Offset `json:"first"`
	End   pipeline.Offset `json:"end"`
	Bytes *int64          `json:"bytes,omitempty"`
}

func shownTopics(topics []embedded.TopicInfo) []shownTopic {
	all := []shownTopic{}

	for _, t := range topics {
		shown := shownTopic{Topic: t.Name, Queues: []shownQueue{}}

		for _, q := range t.Queues {
			one := shownQueue{Queue: q.Queue.String(), First: q.First, End: q.End}
			if q.Bytes != unknownBytes {
				one.Bytes = &q.Bytes
			}

			shown.Queues = append(shown.Queues, one)
		}

		all = append(all, shown)
	}

	return all
}

// topicTable lists the topics.
func topicTable(topics []embedded.TopicInfo) string {
	rows := [][]string{{"TOPIC", "QUEUES", "MESSAGES", "BYTES"}}

	for _, t := range topics {
		var messages, bytes int64

		known := true

		for _, q := range t.Queues {
			messages += int64(q.End - q.First)
			bytes += q.Bytes
			known = known && q.Bytes != unknownBytes
		}

		row := []string{t.Name, number(len(t.Queues)), number(messages), number(bytes)}
		if !known {
			row, rows[0] = row[:3], rows[0][:3]
		}

		rows = append(rows, row)
	}

	if len(rows) == 1 {
		return "there are no topics; make one with `millrace topics create TOPIC`\n"
	}

	return table(rows)
}
