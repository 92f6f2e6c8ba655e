package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// newBroker returns a broker in memory with the demo's topics.
func newBroker(t *testing.T) *consumertest.Broker {
	t.Helper()

	b := consumertest.NewBroker(consumertest.Config{})
	t.Cleanup(b.Close)

	for topic, queues := range topics() {
		b.CreateTopic(topic, queues)
	}

	return b
}

func keysOf(t *testing.T, b consumer.Broker, topic string) []string {
	t.Helper()

	var keys []string
	if err := browse(t.Context(), b, topic, func(m *pipeline.Message) { keys = append(keys, m.Key) }); err != nil {
		t.Fatal(err)
	}

	slices.Sort(keys)

	return keys
}

func TestWhatIsPublishedIsNotPublishedAgain(t *testing.T) {
	t.Parallel()

	b, feed := newBroker(t), feedOf(t, 1)
	b.SetFaults(consumertest.Faults{Gap: 0.05, Gaps: []int64{1, 3000}})

	// A run was killed in the middle of a batch.
	for _, i := range []int{0, 7, 500} {
		if err := b.Publish(t.Context(), quakesTopic, []*pipeline.Message{feed[i].message()}); err != nil {
			t.Fatal(err)
		}
	}

	for range 2 {
		if err := publish(t.Context(), b, b, feed); err != nil {
			t.Fatal(err)
		}
	}

	want := make([]string, len(feed))
	for i, e := range feed {
		want[i] = e.id
	}

	slices.Sort(want)

	if got := keysOf(t, b, quakesTopic); !slices.Equal(got, want) {
		t.Errorf("the topic holds %d messages, the feed %d", len(got), len(want))
	}
}

func TestPublishingFailsLoudly(t *testing.T) {
	t.Parallel()

	b := newBroker(t)
	b.SetFaults(consumertest.Faults{Refuse: map[consumertest.Op]float64{consumertest.OpPublish: 1}})

	if err := publish(t.Context(), b, b, feedOf(t, 1)); err == nil {
		t.Error("no error")
	}
}

func TestStandingsAreWhatTheGroupHasStored(t *testing.T) {
	t.Parallel()

	b := newBroker(t)
	if err := publish(t.Context(), b, b, feedOf(t, 1)); err != nil {
		t.Fatal(err)
	}

	member, err := b.Join(t.Context(), consumer.Subscription{Group: quakesTopic, Topics: []string{quakesTopic}})
	if err != nil {
		t.Fatal(err)
	}

	assigned, err := member.Assigned(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}

	var lease consumer.Lease

	for _, l := range assigned.Leases {
		if l.Queue == (pipeline.Queue{Topic: quakesTopic, ID: 2}) {
			lease = l
		}
	}

	checkpoint := consumer.Checkpoint{Next: 10, Done: []consumer.Run{{From: 12, To: 14}, {From: 20, To: 21}}}
	if err := errors.Join(member.Commit(t.Context(), lease, checkpoint), member.Leave(t.Context())); err != nil {
		t.Fatal(err)
	}

	all, err := standings(t.Context(), b, quakesTopic, quakesTopic)
	if err != nil {
		t.Fatal(err)
	}

	if len(all) != 5 {
		t.Errorf("%d queues, want 4 and the retry queue", len(all))
	}

	var sum pipeline.Offset

	for _, s := range all {
		sum += s.end

		if s.queue != lease.Queue {
			if s.committed != 0 || s.finished(0) {
				t.Errorf("%s stands at %d", s.queue, s.committed)
			}

			continue
		}

		var finished []pipeline.Offset

		for o := range pipeline.Offset(25) {
			if s.finished(o) {
				finished = append(finished, o)
			}
		}

		if want := []pipeline.Offset{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 20}; !slices.Equal(finished, want) {
			t.Errorf("finished are %v, want %v", finished, want)
		}
	}

	if sum != 1707 {
		t.Errorf("the ends sum up to %d, want 1707", sum)
	}

	at, err := bothStandings(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}

	e, err := gather(t.Context(), b, t.TempDir(), feedOf(t, 1), &runs{Clean: []bool{false}}, at)
	if err != nil {
		t.Fatal(err)
	}

	if len(e.finished) != 13 || len(e.quakes.entries) != 1707 || len(e.queues) != 4+1+1+1 {
		t.Errorf("evidence: %d finished, %d published, %d queues", len(e.finished), len(e.quakes.entries), len(e.queues))
	}
}

// TestTheEvidenceIsWhatIsOnDisk lets the books be read back from files and topics.
func TestTheEvidenceIsWhatIsOnDisk(t *testing.T) {
	t.Parallel()

	b, dir := newBroker(t), t.TempDir()
	m := mark{ID: "x", Run: 1, Delivery: 2}

	write(t, dir, archiveFile, quake{mark: m}, quake{mark: m})
	write(t, dir, summariesFile, summary{Events: []mark{m, m}}, summary{Events: []mark{m}})
	write(t, dir, alertsFile, alert{mark: m})

	body, err := json.Marshal(alert{mark: m})
	if err != nil {
		t.Fatal(err)
	}

	for topic, n := range map[string]int{alertsTopic: 1, quakesDead: 2, alertsDead: 3} {
		for range n {
			if err := b.Publish(t.Context(), topic, []*pipeline.Message{{Key: "k", Body: body}}); err != nil {
				t.Fatal(err)
			}
		}
	}

	e, err := gather(t.Context(), b, dir, nil, &runs{Clean: []bool{false}}, nil)
	if err != nil {
		t.Fatal(err)
	}

	dead := mark{ID: "k"}
	for _, c := range []struct {
		book book
		want []mark
	}{
		{e.archive, []mark{m, m}},
		{e.summaries, []mark{m, m, m}},
		{e.alerts, []mark{m}},
		{e.alertsTopic, []mark{m}},
		{e.quakesDead, []mark{dead, dead}},
		{e.alertsDead, []mark{dead, dead, dead}},
	} {
		if !slices.Equal(c.book.entries, c.want) {
			t.Errorf("%s holds %v, want %v", c.book.name, c.book.entries, c.want)
		}
	}

	if err := os.WriteFile(filepath.Join(dir, archiveFile), []byte("{}\n{\n"), 0o600); err != nil {
		t.Fatal(err)
	}

	_, err = gather(t.Context(), b, dir, nil, &runs{Clean: []bool{false}}, nil)
	if err == nil || !strings.Contains(err.Error(), archiveFile+", line 2") {
		t.Errorf("a torn line: %v", err)
	}
}

func write(t *testing.T, dir, name string, lines ...any) {
	t.Helper()

	var text []byte

	for _, l := range lines {
		line, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}

		text = append(append(text, line...), '\n')
	}

	if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
		t.Fatal(err)
	}
}
