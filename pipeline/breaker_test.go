package pipeline_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

func TestBreakerIsCheckedAndHasDefaults(t *testing.T) {
	t.Parallel()

	job := func(b pipeline.Breaker) pipeline.Job {
		return pipeline.Job{
			Name: "job", Source: pipeline.Source{Topics: []string{"in"}},
			Channels: []pipeline.Channel{{Name: "a", Breaker: b, Sink: pipeline.Discard}},
		}
	}

	plan, err := pipeline.Compile(job(pipeline.Breaker{}))
	if err != nil {
		t.Fatal(err)
	}

	want := pipeline.Breaker{Ratio: 0.8, Window: 20, Pause: time.Second, MaxPause: time.Minute, Patience: time.Hour}
	if got := plan.Job.Channels[0].Breaker; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}

	for opens, of := range map[bool][][2]int{true: {{10, 10}, {8, 10}, {16, 20}}, false: {{9, 9}, {7, 10}, {15, 20}}} {
		for _, n := range of {
			if want.Opens(n[0], n[1]) != opens {
				t.Errorf("%d failures of %d: opens %v", n[0], n[1], !opens)
			}
		}
	}

	for path, b := range map[string]pipeline.Breaker{
		"breaker.off":      {Off: true, Window: 3},
		"breaker.ratio":    {Ratio: math.NaN()},
		"breaker.window":   {Window: 65},
		"breaker.pause":    {Pause: -1},
		"breaker.maxPause": {Pause: time.Minute, MaxPause: time.Second},
		"breaker.patience": {Patience: -1},
	} {
		if _, err := pipeline.Compile(job(b)); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%+v: %v, want a mistake at %s", b, err, path)
		}
	}
}
