package dedupe_test

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/pipelinetest"
	"github.com/millrace/millrace/plugins"
	"github.com/millrace/millrace/plugins/dedupe"
)

func setup(tb testing.TB, options any) *dedupe.Memory {
	tb.Helper()

	var o dedupe.Options
	if err := plugins.Decode(options, &o); err != nil {
		tb.Fatal(err)
	}

	memory, err := dedupe.New(o, nil)
	if err != nil {
		tb.Fatal(err)
	}

	return memory
}

func lane(tb testing.TB, memory *dedupe.Memory) pipeline.Transform {
	tb.Helper()

	transform, err := memory.Lane()
	if err != nil {
		tb.Fatal(err)
	}

	return transform
}

// message is the record of an offset.
func message(offset int, key string) *pipeline.Message {
	m := pipelinetest.Message("{}")
	m.ID, m.Key, m.Origin.Offset = "record-"+strconv.Itoa(offset), key, pipeline.Offset(offset)

	return m
}

// passes reports whether m comes out.
func passes(tb testing.TB, transform pipeline.Transform, m *pipeline.Message) bool {
	tb.Helper()

	var next pipelinetest.Recorder
	if err := transform.Transform(tb.Context(), m, next.Emit); err != nil {
		tb.Fatal(err)
	}

	return len(next.Messages) == 1
}

func TestDedupeIsATransform(t *testing.T) {
	t.Parallel()

	pipelinetest.TestTransform(t, func() (pipeline.Transform, error) { return setup(t, nil).Lane() },
		pipelinetest.Case{Name: "first", In: message(1, "k"), Want: []*pipeline.Message{message(1, "k")}},
		pipelinetest.Case{Name: "no key", In: message(1, ""), Want: []*pipeline.Message{message(1, "")}},
	)
}

func TestADuplicateIsFilteredInAllLanes(t *testing.T) {
	t.Parallel()

	memory := setup(t, "key")
	one, two := lane(t, memory), lane(t, memory)

	for i, step := range []struct {
		lane pipeline.Transform
		m    *pipeline.Message
		want bool
	}{
		{one, message(1, "a"), true},
		{one, message(2, "a"), false},
		{two, message(3, "a"), false},
		{two, message(4, "b"), true},
		{one, message(5, ""), true},
		{one, message(6, ""), true},
	} {
		if got := passes(t, step.lane, step.m); got != step.want {
			t.Errorf("step %d passes: %t", i, got)
		}
	}

	got := one.(pipeline.Meter).Meter()
	if want := map[string]int64{"passed": 3, "duplicates": 1, "forgotten": 0}; !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// TestAMessageIsNoDuplicateOfItself holds what loses messages if it goes wrong: a retry must pass.
func TestAMessageIsNoDuplicateOfItself(t *testing.T) {
	t.Parallel()

	transform := lane(t, setup(t, nil))

	returned := message(900, "a") // the copy in a retry topic
	returned.ID, returned.Origin.Queue.Topic, returned.Origin.Delivery = "record-1", "retry", 2

	piece := message(1, "a") // of a record that was split
	piece.ID += "/1"

	chosen := message(2, "a") // the producer gave both the same id
	chosen.ID = "record-1"

	for i, step := range []struct {
		m    *pipeline.Message
		want bool
	}{
		{message(1, "a"), true}, {message(1, "a"), true}, {returned, true}, {piece, false}, {chosen, false},
	} {
		if got := passes(t, transform, step.m); got != step.want {
			t.Errorf("step %d passes: %t", i, got)
		}
	}
}

func TestTheMemoryHasBounds(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		transform := lane(t, setup(t, map[string]any{"for": "10s", "most": 3}))

		if !passes(t, transform, message(0, "0")) {
			t.Fatal("the first is filtered")
		}

		<-time.After(9 * time.Second)

		if passes(t, transform, message(1, "0")) {
			t.Error("forgotten after 9 s of 10")
		}

		<-time.After(time.Second)

		if !passes(t, transform, message(2, "0")) {
			t.Error("remembered after 10 s of 10")
		}

		for i := range 100 {
			if !passes(t, transform, message(10+i, "x"+strconv.Itoa(i))) {
				t.Fatalf("message %d is filtered", i)
			}
		}

		for _, i := range []int{97, 98, 99, 96} { // the last of them is remembered, and another one forgotten for it
			want := i == 96
			if got := passes(t, transform, message(1000+i, "x"+strconv.Itoa(i))); got != want {
				t.Errorf("message %d passes again: %t", i, got)
			}
		}

		if got := transform.(pipeline.Meter).Meter()["forgotten"]; got < 98 {
			t.Errorf("%d were forgotten for want of room", got)
		}
	})
}

func TestLanesFindOneFirstTogether(t *testing.T) {
	t.Parallel()

	const lanes, keys = 8, 200

	var (
		memory = setup(t, nil)
		passed [lanes]int
		all    sync.WaitGroup
	)

	for i := range lanes {
		transform := lane(t, memory)

		all.Go(func() {
			for key := range keys {
				if passes(t, transform, message(i*keys+key, strconv.Itoa(key))) {
					passed[i]++
				}
			}
		})
	}

	all.Wait()

	sum := 0
	for _, n := range passed {
		sum += n
	}

	if sum != keys {
		t.Errorf("%d passed, there are %d keys", sum, keys)
	}
}

func TestWrongOptionsAreRefused(t *testing.T) {
	t.Parallel()

	for _, options := range []any{"kye", map[string]any{"most": -1}, map[string]any{"for": "-1s"}} {
		if err := plugins.Decode(options, &dedupe.Options{}); err == nil {
			t.Errorf("%v is taken", options)
		}
	}

	if _, err := dedupe.New(dedupe.Options{Most: -1}, nil); err == nil {
		t.Error("a negative limit is taken")
	}
}

func ExampleMemory() {
	memory, err := dedupe.New(dedupe.Options{}, nil)
	if err != nil {
		fmt.Println(err)

		return
	}

	transform, _ := memory.Lane() // once for each lane, as Stage.New

	for offset, key := range []string{"us1000chhc", "us2000d3km", "us1000chhc"} {
		m := &pipeline.Message{Key: key, Origin: pipeline.Origin{Offset: pipeline.Offset(offset)}}

		_ = transform.Transform(context.Background(), m, func(m *pipeline.Message) error {
			fmt.Println(m.Key)

			return nil
		})
	}
	// Output:
	// us1000chhc
	// us2000d3km
}
