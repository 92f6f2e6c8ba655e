package pipeline_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func TestDecide(t *testing.T) {
	t.Parallel()

	var (
		broken   = errors.New("broken")
		soon     = pipeline.RetryAfter(broken, 200*time.Millisecond)
		rejected = pipeline.Reject(broken)
		byName   = pipeline.RetryPolicy{Attempts: 4, Delays: []time.Duration{time.Second, time.Minute}}
		standard = pipeline.RetryPolicy{}
	)

	for _, test := range []struct {
		name     string
		policy   pipeline.RetryPolicy
		delivery int
		err      error
		want     pipeline.Outcome
	}{
		{"no error", byName, 1, nil, pipeline.Outcome{}},
		{"no error on the last delivery", byName, 4, nil, pipeline.Outcome{}},
		{"no error beyond it", byName, 9, nil, pipeline.Outcome{}},
		{"first rung", byName, 1, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: time.Second}},
		{"second rung", byName, 2, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: time.Minute}},
		{"last rung again", byName, 3, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: time.Minute}},
		{"last delivery", byName, 4, broken, pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"beyond it", byName, 5, broken, pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"delivery not counted", byName, 0, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: time.Second}},
		{"own delay", byName, 2, soon, pipeline.Outcome{Verdict: pipeline.Retry, Delay: 200 * time.Millisecond}},
		{"own delay, wrapped", byName, 2, fmt.Errorf("x: %w", soon), pipeline.Outcome{Verdict: pipeline.Retry, Delay: 200 * time.Millisecond}},
		{"own delay of less than nothing", byName, 2, pipeline.RetryAfter(broken, -1), pipeline.Outcome{Verdict: pipeline.Retry}},
		{"own delay on the last delivery", byName, 4, soon, pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"rejected", byName, 1, rejected, pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"rejected with a delay", byName, 1, pipeline.RetryAfter(rejected, time.Second), pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"one attempt only", pipeline.RetryPolicy{Attempts: 1}, 1, broken, pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"standard, first", standard, 1, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: 10 * time.Second}},
		{"standard, last retry", standard, 15, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: time.Hour}},
		{"standard, last", standard, 16, broken, pipeline.Outcome{Verdict: pipeline.DeadLetter}},
		{"standard, more attempts", pipeline.RetryPolicy{Attempts: 99}, 50, broken, pipeline.Outcome{Verdict: pipeline.Retry, Delay: time.Hour}},
	} {
		test.want.Err = test.err

		if got := test.policy.Decide(test.delivery, test.err); got != test.want {
			t.Errorf("%s: %+v, want %+v", test.name, got, test.want)
		}
	}
}
