package pipeline_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// FuzzCompile builds jobs that are often nearly right and holds accepted plans against what they promise, each promise
// told in the plainest way.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"", "20011", "A10112007", "A10112207", "B0011200700000", "B0011A007000112"} {
		f.Add([]byte(seed))
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		job := jobOf(data)

		plan, err := pipeline.Compile(job)
		if err == nil {
			holdPlan(t, plan)

			return
		}

		failure, ok := errors.AsType[*pipeline.JobError](err)
		if !ok || len(failure.Mistakes) == 0 {
			t.Fatalf("error %v, want a *JobError with mistakes", err)
		}

		for _, m := range failure.Mistakes {
			if m.Path == "" || m.Problem == "" || m.Cure == "" {
				t.Errorf("mistake without a path, a problem or a cure: %+v", m)
			}
		}
	})
}

// jobOf reads a job out of bytes; when they run out everything is 0, empty or absent.
func jobOf(data []byte) pipeline.Job {
	next := func() int {
		if len(data) == 0 {
			return 0
		}

		b := data[0]
		data = data[1:]

		return int(b)
	}

	job := pipeline.Job{Name: "fuzz", Source: pipeline.Source{Topics: []string{"in"}}}
	for i := range next() % 7 {
		channel := pipeline.Channel{Name: fmt.Sprintf("c%d", i), Order: pipeline.Order(next() % 3), Lanes: next() % 5}

		switch next() % 8 {
		case 0:
			channel.Name = string(rune(next()))
		case 1:
			channel.Gather = &pipeline.GatherStage{New: newGather}
		case 2:
			channel.Stages = []pipeline.Stage{{Name: string(rune('a' + next()%3)), New: newPass}, pipeline.Func("a", pass)}
		case 3:
			channel.Timeout = time.Duration(next() - 100)
		default:
		}

		for range next() % 3 {
			channel.Routes = append(channel.Routes, pipeline.Route{To: fmt.Sprintf("c%d", next()%7)})
		}

		if len(channel.Routes) == 0 {
			channel.Sink = pipeline.Discard
		}

		job.Channels = append(job.Channels, channel)
	}

	return job
}

func holdPlan(t *testing.T, plan *pipeline.Plan) {
	t.Helper()

	channels := plan.Job.Channels

	if sorted := slices.Sorted(slices.Values(plan.Order)); len(sorted) != len(channels) || sorted[0] != 0 ||
		sorted[len(sorted)-1] != len(channels)-1 || len(slices.Compact(sorted)) != len(channels) {
		t.Fatalf("order %v does not hold each of %d channels once", plan.Order, len(channels))
	}

	if plan.Order[0] != plan.Entry || channels[plan.Entry].Name != plan.Job.Source.To {
		t.Fatalf("entry %d, order %v, source.to %q", plan.Entry, plan.Order, plan.Job.Source.To)
	}

	above := make([][]int, len(channels)) // every channel that leads to a channel, over any number of routes

	for _, i := range plan.Order {
		if len(plan.Targets[i]) != len(channels[i].Routes) {
			t.Fatalf("channel %d: targets %v for %d routes", i, plan.Targets[i], len(channels[i].Routes))
		}

		for r, target := range plan.Targets[i] {
			if channels[target].Name != channels[i].Routes[r].To {
				t.Errorf("channel %d: route %d leads to %d, want %q", i, r, target, channels[i].Routes[r].To)
			}

			if slices.Index(plan.Order, target) <= slices.Index(plan.Order, i) {
				t.Fatalf("order %v, but %d routes to %d", plan.Order, i, target)
			}

			above[target] = append(append(above[target], i), above[i]...)
		}
	}

	for i, channel := range channels {
		ordered := func(j int) bool { return channels[j].Order != pipeline.OrderNone }

		if i != plan.Entry && len(above[i]) == 0 {
			t.Errorf("channel %d cannot be reached", i)
		}

		if want := ordered(i) || slices.ContainsFunc(above[i], ordered); plan.InPlace[i] != want {
			t.Errorf("channel %d: in place %v, want %v", i, plan.InPlace[i], want)
		}

		weaker := func(j int) bool { return !ordered(j) || channel.Order > channels[j].Order }
		if ordered(i) && slices.ContainsFunc(above[i], weaker) {
			t.Errorf("channel %d keeps order %s, but something above it does not", i, channel.Order)
		}
	}
}
