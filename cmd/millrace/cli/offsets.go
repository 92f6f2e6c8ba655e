package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/millrace/control"
	"github.com/millrace/millrace/consumer/embedded"
	"github.com/millrace/millrace/pipeline"
)

func (a *app) offsetsCommand() *cobra.Command {
	var (
		broker string
		asJSON bool
	)

	cmd := &cobra.Command{
		Use:     "offsets [GROUP]",
		Short:   "Show how far groups are, or make one go on elsewhere",
		GroupID: groupBroker,
		Example: `  millrace offsets
  millrace offsets alerts
  millrace offsets reset alerts quakes/2 first
  millrace offsets alerts --broker rocketmq://127.0.0.1:9876`,
		Long: "Offsets lists how far groups are in each queue, and who their members are.\n\n" + clusterText,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStation(cmd.Context(), broker, func(ctx context.Context, s station) error {
				return a.listOffsets(ctx, s, strings.Join(args, ""), asJSON)
			})
		},
	}

	cmd.PersistentFlags().StringVarP(&broker, brokerFlag, "b", defaultBroker, stationHelp)
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")

	cmd.AddCommand(&cobra.Command{
		Use:   "reset GROUP TOPIC[/QUEUE] POSITION",
		Short: "Make a group go on at another offset",
		Long: `Reset makes a group go on at a position, in all queues of a topic or in one: first, last, an offset, a time such as
2026-01-31T12:00:00Z, or how long ago, such as 90m. From there on everything is done again; everything below counts as finished.
It works on running jobs, without a restart, as on groups that nobody works for. On RocketMQ a running group follows with its
next pull, after up to 20 s, and TOPIC@BROKER/QUEUE is a queue.`,
		Example: `  millrace offsets reset alerts quakes first
  millrace offsets reset alerts quakes/2 1204
  millrace offsets reset alerts quakes 90m`,
		Args: cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			reset, err := resetOf(args[0], args[1], args[2])
			if err != nil {
				return err
			}

			return a.withStation(cmd.Context(), broker, func(ctx context.Context, s station) error {
				moved, err := s.Reset(ctx, reset)
				for _, m := range moved {
					from := "the start"
					if m.Stored {
						from = number(m.From)
					}

					_, _ = fmt.Fprintf(a.Out, "%s  %s → %s\n", m.Queue, from, number(m.To))
				}

				return err //nolint:wrapcheck // it says what is wrong
			})
		},
	})

	return cmd
}

// resetOf reads the arguments of a reset.
func resetOf(group, what, position string) (control.Reset, error) {
	to, err := control.ParsePosition(position)
	if err != nil {
		return control.Reset{}, usagef("offsets reset: %w", err)
	}

	r := control.Reset{Group: group, Topic: what, Queue: -1, To: to}

	topic, _, one := strings.Cut(what, "/")
	if !one {
		return r, nil
	}

	q, err := pipeline.ParseQueue(what)
	if err != nil {
		return r, usagef("offsets reset: %q is no queue; write it like %s/0", what, topic)
	}

	r.Topic, r.Broker, r.Queue = q.Topic, q.Broker, q.ID

	return r, nil
}

// shownGroup is a group as it is written for scripts.
type shownGroup struct {
	Group   string        `json:"group"`
	Members []string      `json:"members"`
	Queues  []shownOffset `json:"queues"`
}

// shownOffset is how far a group is in a queue.
type shownOffset struct {
	Queue  string          `json:"queue"`
	Offset pipeline.Offset `json:"offset"`
	Lag    int64           `json:"lag"`
}

func shownGroups(groups []embedded.GroupInfo) []shownGroup {
	all := []shownGroup{}

	for _, g := range groups {
		shown := shownGroup{Group: g.Name, Members: append([]string{}, g.Members...), Queues: []shownOffset{}}
		for _, o := range g.Offsets {
			shown.Queues = append(shown.Queues, shownOffset{Queue: o.Queue.String(), Offset: o.Next, Lag: o.Lag})
		}

		all = append(all, shown)
	}

	return all
}

func (a *app) listOffsets(ctx context.Context, c catalog, group string, asJSON bool) error {
	groups, err := c.Groups(ctx, group)
	if err != nil {
		return err //nolint:wrapcheck // it says what is wrong
	}

	if asJSON {
		return a.encode(shownGroups(groups))
	}

	rows := [][]string{{"GROUP", "QUEUE", "OFFSET", "LAG", "MEMBERS"}}

	for _, g := range groups {
		members := strings.Join(g.Members, ", ")
		if len(g.Offsets) == 0 {
			rows = append(rows, []string{g.Name, "", "", "", members})
		}

		for _, o := range g.Offsets {
			rows = append(rows, []string{g.Name, o.Queue.String(), number(o.Next), number(o.Lag), members})
		}
	}

	text := table(rows)
	if len(rows) == 1 {
		text = "no group has stored an offset\n"
	}

	_, err = io.WriteString(a.Out, text)

	return err //nolint:wrapcheck // of the output
}
