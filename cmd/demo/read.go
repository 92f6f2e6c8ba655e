package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

// browse reads a topic from its first message to its present end, beside the groups that work on it.
func browse(ctx context.Context, b consumer.Broker, topic string, visit func(*pipeline.Message)) error {
	return withQueues(ctx, b, consumer.Subscription{
		Group: "audit", Topics: []string{topic}, Broadcast: true, Instance: "audit",
	}, func(member consumer.Member, l consumer.Lease) error {
		if l.Queue.Topic != topic {
			return nil
		}

		from, err := member.Find(ctx, l.Queue, pipeline.First)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}

		end, err := member.Find(ctx, l.Queue, pipeline.Last)
		if err != nil {
			return fmt.Errorf("demo: %w", err)
		}

		for from < end {
			batch, err := member.Pull(ctx, l, from, consumer.Limit{Messages: 1000, Bytes: 8 << 20})
			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}

			for _, m := range batch.Messages {
				visit(m)
			}

			from = batch.Next
		}

		return nil
	})
}

// standing is a position with what is finished above it.
type standing struct {
	position

	done []consumer.Run
}

// finished reports whether the group is done with an offset.
func (s *standing) finished(o pipeline.Offset) bool {
	for _, r := range s.done {
		if r.From <= o && o < r.To {
			return true
		}
	}

	return o < s.committed
}

// bothStandings returns how far both groups are, whose jobs have ended.
func bothStandings(ctx context.Context, b consumer.Broker) ([]standing, error) {
	quakes, err := standings(ctx, b, quakesTopic, quakesTopic)
	if err != nil {
		return nil, err
	}

	alerts, err := standings(ctx, b, alertsTopic, alertsTopic)

	return slices.Concat(quakes, alerts), err
}

// standings returns how far a group is in the queues of a topic and in its retry topic. Nobody else may be a member.
func standings(ctx context.Context, b consumer.Broker, group, topic string) ([]standing, error) {
	var all []standing

	err := withQueues(ctx, b, consumer.Subscription{Group: group, Topics: []string{topic}},
		func(member consumer.Member, l consumer.Lease) error {
			s := standing{position: position{group: group, queue: l.Queue}}

			stored, err := member.Stored(ctx, l.Queue)
			s.committed, s.done = stored.Next, stored.Done

			if errors.Is(err, consumer.ErrNoCheckpoint) {
				s.committed, err = member.Find(ctx, l.Queue, pipeline.First)
			}

			if err == nil {
				s.end, err = member.Find(ctx, l.Queue, pipeline.Last)
			}

			if err != nil {
				return fmt.Errorf("demo: %w", err)
			}

			all = append(all, s)

			return nil
		})

	return all, err
}

// withQueues calls visit for every queue of a membership that lasts as long as the call.
func withQueues(
	ctx context.Context, b consumer.Broker, s consumer.Subscription,
	visit func(consumer.Member, consumer.Lease) error,
) (err error) {
	member, err := b.Join(ctx, s)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	defer func() {
		if left := member.Leave(context.WithoutCancel(ctx)); left != nil {
			err = errors.Join(err, fmt.Errorf("demo: %w", left))
		}
	}()

	assigned, err := member.Assigned(ctx, 0)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}

	for _, l := range assigned.Leases {
		if err := visit(member, l); err != nil {
			return err
		}
	}

	return nil
}

// readLines decodes every line of a file into a T and hands it to visit. A file that is not there has no lines.
func readLines[T any](path string, visit func(T)) error {
	f, err := os.Open(path) //nolint:gosec // one of the demo's own files
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}

	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer f.Close() //nolint:errcheck // nothing was written

	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)

	for n := 1; lines.Scan(); n++ {
		var v T
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			return fmt.Errorf("demo: %s, line %d: %w", path, n, err)
		}

		visit(v)
	}

	if err := lines.Err(); err != nil {
		return fmt.Errorf("demo: %s: %w", path, err)
	}

	return nil
}

// The files of a directory beside the broker's.
const (
	archiveFile   = "archive.jsonl"
	summariesFile = "summaries.jsonl"
	alertsFile    = "alerts.jsonl"
)

// gather reads the evidence of a directory and its broker, where both groups are as far as standings says.
func gather(ctx context.Context, b consumer.Broker, dir string, feed []event, r *runs, standings []standing) (*evidence, error) {
	e := &evidence{
		feed: feed, runs: r, finished: make(set),
		quakes:     book{name: "topic " + quakesTopic},
		quakesDead: book{name: "topic " + quakesDead},
		alertsDead: book{name: "topic " + alertsDead},

		alertsTopic: book{name: "topic " + alertsTopic},
		archive:     book{name: archiveFile},
		summaries:   book{name: summariesFile},
		alerts:      book{name: alertsFile},
	}

	if err := e.readTopics(ctx, b, standings); err != nil {
		return nil, err
	}

	if err := e.readFiles(dir); err != nil {
		return nil, err
	}

	return e, nil
}

func (e *evidence) readTopics(ctx context.Context, b consumer.Broker, standings []standing) error {
	at := make(map[pipeline.Queue]standing)

	for _, s := range standings {
		e.queues = append(e.queues, s.position)
		at[s.queue] = s
	}

	err := browse(ctx, b, quakesTopic, func(m *pipeline.Message) {
		e.quakes.entries = append(e.quakes.entries, mark{ID: m.Key})

		if s := at[m.Origin.Queue]; s.finished(m.Origin.Offset) {
			e.finished[m.Key] = true
		}
	})
	if err != nil {
		return err
	}

	for topic, dead := range map[string]*book{quakesDead: &e.quakesDead, alertsDead: &e.alertsDead} {
		err := browse(ctx, b, topic, func(m *pipeline.Message) {
			dead.entries = append(dead.entries, mark{ID: m.Key})
		})
		if err != nil {
			return err
		}
	}

	var undecodable error

	err = browse(ctx, b, alertsTopic, func(m *pipeline.Message) {
		var a alert
		if err := json.Unmarshal(m.Body, &a); err != nil {
			undecodable = fmt.Errorf("demo: topic %s, offset %d: %w", alertsTopic, m.Origin.Offset, err)
		}

		e.alertsTopic.entries = append(e.alertsTopic.entries, a.mark)
	})

	return errors.Join(err, undecodable)
}

func (e *evidence) readFiles(dir string) error {
	archive := readLines(filepath.Join(dir, archiveFile), func(q quake) {
		e.archive.entries = append(e.archive.entries, q.mark)
	})
	summaries := readLines(filepath.Join(dir, summariesFile), func(s summary) {
		e.summaries.entries = append(e.summaries.entries, s.Events...)
	})
	alerts := readLines(filepath.Join(dir, alertsFile), func(a alert) {
		e.alerts.entries = append(e.alerts.entries, a.mark)
	})

	return errors.Join(archive, summaries, alerts)
}
