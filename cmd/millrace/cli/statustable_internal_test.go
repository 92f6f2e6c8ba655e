package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/actors"
)

func TestTheStatusNamesAnOpenBreakerAndWhenItTriesAgain(t *testing.T) {
	t.Parallel()

	now := time.Now()
	s := &actors.Snapshot{Job: "pay", At: now, Channels: []actors.ChannelStatus{{
		Name: "write", Breaker: &actors.BreakerStatus{
			Stage: "sink", Since: now.Add(-time.Minute), LastError: "connection refused\nby all", NextAt: now.Add(3 * time.Second),
		},
	}}}

	const want = "pauses for 1m: breaker open at sink, tries one in 3s: connection refused"
	if got := strings.Join(statusLines(s, nil), "\n"); !strings.Contains(got, want+"\n") && !strings.HasSuffix(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}

	s.Channels[0].Breaker.NextAt = time.Time{}

	if got := strings.Join(statusLines(s, nil), "\n"); !strings.Contains(got, "breaker open at sink, tries one message now: ") {
		t.Error(got)
	}
}
