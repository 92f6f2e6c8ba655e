package cli

import (
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/actors/admin"
)

func TestWhyShowsAWarningOfTheGroup(t *testing.T) {
	t.Parallel()

	lines := whyLines(&admin.JobWhy{Job: "j", State: "running", Warning: "mixed"}, false)
	if want := []string{"j  warning: mixed"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}

func TestWhyTellsOfMessagesThatComeAgain(t *testing.T) {
	t.Parallel()

	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	idle := admin.Why{QueueStatus: actors.QueueStatus{End: 4, Min: 4}, Cause: admin.NoMessages}

	lines := whyLines(&admin.JobWhy{
		Job: "j", State: "running", At: at, Away: 3, BackAt: at.Add(12 * time.Second), Queues: []admin.Why{idle},
	}, false)
	if want := []string{"j: nothing stands", "j: 3 messages were sent back and come again, the first in 12s"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
