package consumer_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func TestCheckpointFromDiskIsChecked(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		checkpoint consumer.Checkpoint
		ok         bool
	}{
		"zero":             {consumer.Checkpoint{}, true},
		"runs":             {consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(6, 7), run(8, 10)}}, true},
		"negative":         {consumer.Checkpoint{Next: -1}, false},
		"run at next":      {consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(5, 7)}}, false},
		"run below next":   {consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(2, 3)}}, false},
		"empty run":        {consumer.Checkpoint{Done: []consumer.Run{run(6, 6)}}, false},
		"backward run":     {consumer.Checkpoint{Done: []consumer.Run{run(6, 5)}}, false},
		"runs that touch":  {consumer.Checkpoint{Done: []consumer.Run{run(6, 7), run(7, 8)}}, false},
		"runs not in line": {consumer.Checkpoint{Done: []consumer.Run{run(8, 10), run(6, 7)}}, false},
	} {
		if err := c.checkpoint.Validate(); (err == nil) != c.ok || !c.ok && !errors.Is(err, consumer.ErrBadCheckpoint) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFinishedOffsetsAreMergedIntoACheckpoint(t *testing.T) {
	t.Parallel()

	c := consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(7, 9), run(20, 22)}}

	for name, x := range map[string]struct {
		done []consumer.Run
		want consumer.Checkpoint
	}{
		"nothing":        {nil, c},
		"below next":     {[]consumer.Run{run(1, 3)}, c},
		"moves next":     {[]consumer.Run{run(5, 7)}, consumer.Checkpoint{Next: 9, Done: []consumer.Run{run(20, 22)}}},
		"joins":          {[]consumer.Run{run(9, 20)}, consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(7, 22)}}},
		"out of order":   {[]consumer.Run{run(30, 31), run(3, 8)}, consumer.Checkpoint{Next: 9, Done: []consumer.Run{run(20, 22), run(30, 31)}}},
		"swallows":       {[]consumer.Run{run(19, 40), run(21, 22)}, consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(7, 9), run(19, 40)}}},
		"swallows all":   {[]consumer.Run{run(0, 40)}, consumer.Checkpoint{Next: 40}},
		"ignores empty":  {[]consumer.Run{run(5, 5), run(6, 4)}, c},
		"single offsets": {[]consumer.Run{run(6, 7), run(5, 6)}, consumer.Checkpoint{Next: 9, Done: []consumer.Run{run(20, 22)}}},
	} {
		got := c.With(x.done...)
		if got.Next != x.want.Next || !slices.Equal(got.Done, x.want.Done) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}

		if err := got.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	if !slices.Equal(c.Done, []consumer.Run{run(7, 9), run(20, 22)}) {
		t.Fatalf("With changed its receiver: %v", c.Done)
	}
}

func TestFinishedKnowsTheEdgesOfRuns(t *testing.T) {
	t.Parallel()

	c := consumer.Checkpoint{Next: 2, Done: []consumer.Run{run(4, 6), run(8, 9), run(11, 15)}}
	want := []pipeline.Offset{0, 1, 4, 5, 8, 11, 12, 13, 14}

	var got []pipeline.Offset

	for o := range pipeline.Offset(20) {
		if c.Finished(o) {
			got = append(got, o)
		}
	}

	if !slices.Equal(got, want) {
		t.Fatalf("finished %v, want %v", got, want)
	}
}

func TestCheckpointIncludesWhatItCallsFinished(t *testing.T) {
	t.Parallel()

	before := consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(7, 9), run(20, 22)}}

	for name, x := range map[string]struct {
		after consumer.Checkpoint
		want  bool
	}{
		"itself":       {before, true},
		"more":         {consumer.Checkpoint{Next: 6, Done: []consumer.Run{run(7, 30)}}, true},
		"moved over":   {consumer.Checkpoint{Next: 9, Done: []consumer.Run{run(20, 23)}}, true},
		"moved past":   {consumer.Checkpoint{Next: 22}, true},
		"goes back":    {consumer.Checkpoint{Next: 4, Done: []consumer.Run{run(5, 22)}}, false},
		"loses a run":  {consumer.Checkpoint{Next: 9}, false},
		"loses a part": {consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(7, 9), run(21, 22)}}, false},
		"has a hole":   {consumer.Checkpoint{Next: 5, Done: []consumer.Run{run(7, 8), run(20, 22)}}, false},
	} {
		if got := x.after.Includes(before); got != x.want {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
	}
}
