package pipeline_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

func at(topic string, queue int, offset pipeline.Offset, key string) *pipeline.Message {
	return &pipeline.Message{
		Key: key,
		Origin: pipeline.Origin{
			Queue: pipeline.Queue{Topic: topic, Broker: "broker-a", ID: queue}, Offset: offset, Delivery: 1,
		},
	}
}

func TestOneKeyHasOneLane(t *testing.T) {
	t.Parallel()

	want := pipeline.LaneOf(at("quakes", 0, 0, "us2000d3km"), pipeline.OrderByKey, 7)

	for i := range 50 {
		m := at(fmt.Sprintf("topic-%d", i), i, pipeline.Offset(i), "us2000d3km")
		m.Origin.Epoch, m.Origin.Delivery, m.Tag, m.Body = uint64(i), i, "x", []byte{byte(i)}

		if got := pipeline.LaneOf(m, pipeline.OrderByKey, 7); got != want {
			t.Fatalf("message %d of the key is in lane %d, the first one in lane %d", i, got, want)
		}
	}
}

func TestOneQueueHasOneLane(t *testing.T) {
	t.Parallel()

	want := pipeline.LaneOf(at("quakes", 3, 0, ""), pipeline.OrderByQueue, 7)

	for i := range 50 {
		offset := pipeline.Offset(i)
		if got := pipeline.LaneOf(at("quakes", 3, offset, strconv.Itoa(i)), pipeline.OrderByQueue, 7); got != want {
			t.Fatalf("offset %d is in lane %d, the first one in lane %d", i, got, want)
		}

		if got := pipeline.LaneOf(at("quakes", 3, offset, ""), pipeline.OrderByKey, 7); got != want {
			t.Fatalf("offset %d, without a key, is in lane %d, its queue in lane %d", i, got, want)
		}
	}
}

// A job that is restarted, here or elsewhere, must keep its lanes: change these numbers only on purpose.
func TestLanesAreTheSameInEveryProcess(t *testing.T) {
	t.Parallel()

	for _, test := range []struct {
		message *pipeline.Message
		order   pipeline.Order
		want    int
	}{
		{at("quakes", 0, 0, "a"), pipeline.OrderByKey, 150},
		{at("quakes", 0, 0, "us2000d3km"), pipeline.OrderByKey, 686},
		{at("quakes", 0, 0, "nineteen characters"), pipeline.OrderByKey, 99},
		{at("quakes", 0, 0, ""), pipeline.OrderByKey, 747},
		{at("quakes", 1, 0, "x"), pipeline.OrderByQueue, 748},
		{at("quakes", 5, 1204, "x"), pipeline.OrderNone, 209},
	} {
		if got := pipeline.LaneOf(test.message, test.order, 1000); got != test.want {
			t.Errorf("order %s, key %q, %s: lane %d, want %d",
				test.order, test.message.Key, test.message.Origin.Queue, got, test.want)
		}
	}
}

// With n keys in k lanes the sum of (count-n/k)²/(n/k) is near k-1 when the lanes are picked as if by chance.
func TestKeysSpreadOverLanes(t *testing.T) {
	t.Parallel()

	const keys = 20_000

	for _, form := range []string{"%d", "user-%d", "%08d", "device/%d/temperature", "us7000%05x", "%d-a-long-tail-that-never-changes"} {
		for _, lanes := range []int{2, 3, 4, 7, 8, 16, 64} {
			counts := make([]int, lanes)
			for i := range keys {
				counts[pipeline.LaneOf(at("quakes", 0, 0, fmt.Sprintf(form, i)), pipeline.OrderByKey, lanes)]++
			}

			expected, chi := float64(keys)/float64(lanes), 0.0
			for _, count := range counts {
				chi += (float64(count) - expected) * (float64(count) - expected) / expected
			}

			// Twice the mean and 20 more: never exceeded by chance, and by far by a hash that prefers lanes.
			if chi > 2*float64(lanes)+20 {
				t.Errorf("keys %q over %d lanes: chi squared %.0f, counts %v", form, lanes, chi, counts)
			}
		}
	}
}

func TestNeighboursSpreadOverAllLanes(t *testing.T) {
	t.Parallel()

	const lanes = 4

	for name, lane := range map[string]func(i int) int{
		"offsets of a queue without order": func(i int) int {
			return pipeline.LaneOf(at("quakes", 2, 1000+pipeline.Offset(i), "k"), pipeline.OrderNone, lanes)
		},
		"queues of a topic by queue": func(i int) int {
			return pipeline.LaneOf(at("quakes", i, 7, "k"), pipeline.OrderByQueue, lanes)
		},
	} {
		used := make(map[int]bool)
		for i := range lanes {
			used[lane(i)] = true
		}

		if len(used) != lanes {
			t.Errorf("%d %s use %d lanes", lanes, name, len(used))
		}
	}
}

func TestPickingALaneAllocatesNothing(t *testing.T) {
	m := at("quakes", 3, 1204, "us2000d3km")

	for _, order := range []pipeline.Order{pipeline.OrderNone, pipeline.OrderByKey, pipeline.OrderByQueue} {
		if got := testing.AllocsPerRun(100, func() { pipeline.LaneOf(m, order, 8) }); got != 0 {
			t.Errorf("order %s: %v allocations a message", order, got)
		}
	}
}

func FuzzLaneOf(f *testing.F) {
	f.Add("us2000d3km", "quakes", "broker-a", 3, int64(1204), 4)
	f.Add("", "", "", 0, int64(0), 0)

	f.Fuzz(func(t *testing.T, key, topic, broker string, queue int, offset int64, lanes int) {
		m := &pipeline.Message{Key: key, Origin: pipeline.Origin{
			Queue: pipeline.Queue{Topic: topic, Broker: broker, ID: queue}, Offset: pipeline.Offset(offset),
		}}

		for _, order := range []pipeline.Order{pipeline.OrderNone, pipeline.OrderByKey, pipeline.OrderByQueue} {
			if got := pipeline.LaneOf(m, order, lanes); got < 0 || got >= max(lanes, 1) {
				t.Errorf("order %s: lane %d of %d", order, got, lanes)
			}
		}
	})
}

func TestARouteTakesWhatMeetsAllThatItAsksFor(t *testing.T) {
	t.Parallel()

	broken := errors.New("no JSON")
	keyed := func(m *pipeline.Message) (bool, error) {
		if m.Key == "broken" {
			return false, broken
		}

		return m.Key == "k", nil
	}

	all, major := pipeline.Route{To: "archive"}, pipeline.Route{To: "alerts", When: pipeline.Tagged("major")}
	both := pipeline.Route{To: "alerts", When: pipeline.Tagged("major"), Condition: keyed}

	for _, c := range []struct {
		tag, key        string
		wantMajor, want bool
		err             error
	}{
		{"major", "k", true, true, nil},
		{"major", "other", true, false, nil},
		{"major", "broken", true, false, broken},
		{"minor", "broken", false, false, nil},
		{"", "k", false, false, nil},
	} {
		m := &pipeline.Message{Tag: c.tag, Key: c.key}

		if ok, err := all.Matches(m); !ok || err != nil {
			t.Errorf("a route without conditions says %v, %v", ok, err)
		}

		if ok, err := major.Matches(m); ok != c.wantMajor || err != nil {
			t.Errorf("tag %q: %v, %v, want %v", c.tag, ok, err, c.wantMajor)
		}

		if ok, err := both.Matches(m); ok != c.want || !errors.Is(err, c.err) {
			t.Errorf("tag %q, key %q: %v, %v, want %v, %v", c.tag, c.key, ok, err, c.want, c.err)
		}
	}
}

func BenchmarkLaneOf(b *testing.B) {
	for _, order := range []pipeline.Order{pipeline.OrderNone, pipeline.OrderByKey, pipeline.OrderByQueue} {
		b.Run(order.String(), func(b *testing.B) {
			m := at("quakes", 3, 1204, "us2000d3km")

			b.ReportAllocs()

			for b.Loop() {
				pipeline.LaneOf(m, order, 8)
			}
		})
	}
}
