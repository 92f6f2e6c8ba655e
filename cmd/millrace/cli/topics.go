package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/embedded"
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
		Example: `  millrace topics
  millrace topics create quakes --queues 8`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withBroker(cmd.Context(), broker, func(ctx context.Context, c *control.Client) error {
				d, err := c.Describe(ctx)
				if err != nil {
					return err //nolint:wrapcheck // it says what is wrong
				}

				if asJSON {
					return a.encode(d.Topics)
				}

				_, err = io.WriteString(a.Out, topicTable(d, all))

				return err //nolint:wrapcheck // of the output
			})
		},
	}

	cmd.PersistentFlags().StringVarP(&broker, brokerFlag, "b", defaultBroker, brokerHelp)
	cmd.Flags().BoolVar(&all, "all", false, "list also the topics in which groups keep their retries")
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")

	create := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Make a topic",
		Long: `Create makes a topic, and the broker where there is none. A topic that is there with as many queues is left
as it is. Messages of one key are in one queue; the number of queues bounds how many members of a group share the work.`,
		Example: "  millrace topics create quakes --queues 8 --broker data",
		Args:    cobra.ExactArgs(1),
	}
	queues := create.Flags().Int("queues", newTopicQueues, "how many `queues` it has")
	create.RunE = func(cmd *cobra.Command, args []string) error {
		return a.createTopic(cmd.Context(), broker, args[0], *queues)
	}

	cmd.AddCommand(create)

	return cmd
}

func (a *app) createTopic(ctx context.Context, broker, topic string, queues int) error {
	dir, err := a.directory(broker)
	if err != nil {
		return err
	}

	if !exists(dir) {
		b, err := embedded.Open(embedded.Options{Dir: dir}) //nolint:contextcheck // opening and closing take none
		if err != nil {
			return err //nolint:wrapcheck // it names the directory and the way out
		}

		if err := b.Close(); err != nil {
			return err //nolint:wrapcheck // as above
		}
	}

	return a.withBroker(ctx, broker, func(ctx context.Context, c *control.Client) error {
		if err := c.CreateTopic(ctx, topic, queues); err != nil {
			return err //nolint:wrapcheck // it says what is wrong
		}

		_, _ = fmt.Fprintf(a.Err, "topic %s has %s\n", topic, plural(queues, "queue"))

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

// topicTable lists the topics.
func topicTable(d embedded.Description, all bool) string {
	rows := [][]string{{"TOPIC", "QUEUES", "MESSAGES", "BYTES"}}

	for _, t := range d.Topics {
		if !all && strings.HasPrefix(t.Name, consumer.RetryTopic("")) {
			continue
		}

		var messages, bytes int64

		for _, q := range t.Queues {
			messages += int64(q.End - q.First)
			bytes += q.Bytes
		}

		rows = append(rows, []string{t.Name, number(len(t.Queues)), number(messages), number(bytes)})
	}

	if len(rows) == 1 {
		return "there are no topics; make one with `millrace topics create`\n"
	}

	return table(rows)
}
