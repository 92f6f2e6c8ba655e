package main

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/pipeline"
)

func TestProgressIsALineForTheJobAndOneForEachChannel(t *testing.T) {
	t.Parallel()

	s := &actors.Snapshot{
		Job: quakesTopic, State: "running",
		Queues: []actors.QueueStatus{
			{InFlight: 5, Committed: 1, Min: 10, End: 1510}, {InFlight: 7, Committed: 2, Min: 20, End: 20},
		},
		Channels: []actors.ChannelStatus{
			{Name: "classify", Lanes: make([]actors.LaneStatus, 4), Counts: actors.LaneCounts{Taken: 1234, Failed: 2}},
			{Name: "archive", Lanes: make([]actors.LaneStatus, 1), Counts: actors.LaneCounts{Taken: 9, Written: 8}},
		},
		Counts: actors.TrackerCounts{Completed: 3000, Filtered: 50, DeadLettered: 4, SentBack: 6},
	}

	want := []string{
		"quakes  running 01:01:01   done 3,054 (0/s)   in flight 12   lag 1,500   sent back 6",
		"  classify   4 lanes  taken    1,234   failed 2",
		"  archive    1 lane   taken        9   written 8",
	}

	if got := progressLines(s, time.Hour+time.Minute+time.Second, true); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	if got := progressLines(s, 2*time.Second, false); len(got) != 1 || got[0][:49] != "quakes  running 00:00:02   done 3,054 (1,527/s)  " {
		t.Errorf("got %q", got)
	}
}

func TestEventsAreToldToPeople(t *testing.T) {
	t.Parallel()

	in := actors.In{Job: "j"}
	queue := pipeline.Queue{Topic: "q"}
	err := &pipeline.StageError{Channel: "c", Stage: "s", Err: errors.New("bad"), Stack: []byte("stack")}

	for want, event := range map[string]actors.Event{
		"": &actors.Committed{In: in},
		"j: m is sent back for 1s after delivery 2: c/s: bad": &actors.MessageReturned{
			In: in, MessageID: "m", Delivery: 2, Delay: time.Second, Err: err,
		},
		"j: m is a dead letter: c/s: bad":                  &actors.MessageDead{In: in, MessageID: "m", Err: err},
		"j: lane c-3 hangs in s with m: it is replaced":    &actors.LaneHung{In: in, Channel: "c", Lane: 3, Stage: "s", MessageID: "m"},
		"j: q/0 goes on at 0; 1 finished message above it": &actors.QueueAssigned{In: in, Queue: queue, Done: 1},
		"j: q/0 cannot be read, again in 1s: c/s: bad":     &actors.QueueWaits{In: in, Queue: queue, Retry: time.Second, Err: err},
		"j: warning: mixed":                                &actors.GroupWarned{In: in, Warning: "mixed"},
		"j: q/0: the commit failed: c/s: bad":              &actors.CommitFailed{In: in, Queue: queue, Err: err},
	} {
		if got := tell(event); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	if got := tell(&actors.QueueAssigned{In: in, Queue: queue}); got != "" {
		t.Errorf("a queue that begins at its beginning: %q", got)
	}
}
