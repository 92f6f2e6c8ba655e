package cli

import (
	"slices"
	"testing"

	"github.com/millrace/millrace/actors/admin"
)

func TestWhyShowsAWarningOfTheGroup(t *testing.T) {
	t.Parallel()

	lines := whyLines(&admin.JobWhy{Job: "j", State: "running", Warning: "mixed"}, false)
	if want := []string{"j  warning: mixed"}; !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
}
