package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer"
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
		Example: `  millrace topics
  millrace topics create quakes --queues 8`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withBroker(cmd.Context(), broker, func(ctx context.Context, c *control.Client) error {
				d, err := c.Describe(ctx)
				if err != nil {
					return err //nolint:wrapcheck // it says what is wrong
				}

				if asJSON {
					return a.encode(shownTopics(d, all))
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
	return a.withNewBroker(ctx, broker, func(ctx context.Context, c *control.Client) error {
		if err := c.CreateTopic(ctx, topic, queues); err != nil {
			return err //nolint:wrapcheck // it says what is wrong
		}

		_, _ = fmt.Fprintf(a.Err, "topic %s has %s\n", topic, plural(queues, "queue"))

		return nil
	})
}

// ensureTopic makes a topic that is missing, and tells so. One that is there stays as it is.
func (a *app) ensureTopic(ctx context.Context, broker, topic string) error {
	return a.withNewBroker(ctx, broker, func(ctx context.Context, c *control.Client) error {
		d, err := c.Describe(ctx)
		if err != nil || slices.Contains(topicNames(d), topic) {
			return err //nolint:wrapcheck // it says what is wrong
		}

		if err := c.CreateTopic(ctx, topic, newTopicQueues); err != nil {
			return err //nolint:wrapcheck // as above
		}

		_, _ = fmt.Fprintf(a.Err, "made topic %s with %s\n", topic, plural(newTopicQueues, "queue"))

		return nil
	})
}

// withNewBroker is withBroker, but makes the broker where there is none.
func (a *app) withNewBroker(ctx context.Context, broker string, use func(context.Context, *control.Client) error) error {
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

	return a.withBroker(ctx, broker, use)
}

// topicNames are the topics that people have to do with.
func topicNames(d embedded.Description) []string {
	var names []string

	for _, t := range d.Topics {
		if !strings.HasPrefix(t.Name, consumer.RetryTopic("")) {
			names = append(names, t.Name)
		}
	}

	return names
}

// whetherTopic returns why something failed: that there is no such topic, with a cure, or else the error itself.
func whetherTopic(ctx context.Context, c *control.Client, topic string, err error, cure string) error {
	d, failed := c.Describe(ctx)
	if failed != nil || slices.ContainsFunc(d.Topics, func(t embedded.TopicInfo) bool { return t.Name == topic }) {
		return err
	}

	return fmt.Errorf("there is no topic %q; %s%s", topic, pipeline.Suggest(topic, topicNames(d)), cure)
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

// shownQueue is a queue that holds messages from First to, and without, End.
type shownQueue struct {
	Queue string          `json:"queue"`
	First pipeline.Offset `json:"first"`
	End   pipeline.Offset `json:"end"`
	Bytes int64           `json:"bytes"`
}

func shownTopics(d embedded.Description, all bool) []shownTopic {
	topics := []shownTopic{}

	for _, t := range d.Topics {
		if !all && strings.HasPrefix(t.Name, consumer.RetryTopic("")) {
			continue
		}

		shown := shownTopic{Topic: t.Name, Queues: []shownQueue{}}
		for _, q := range t.Queues {
			shown.Queues = append(shown.Queues, shownQueue{Queue: q.Queue.String(), First: q.First, End: q.End, Bytes: q.Bytes})
		}

		topics = append(topics, shown)
	}

	return topics
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
		return "there are no topics; make one with `millrace topics create TOPIC`\n"
	}

	return table(rows)
}
