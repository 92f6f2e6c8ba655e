package consumer_test

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
)

func queuesOf(topic, broker string, n int) []pipeline.Queue {
	queues := make([]pipeline.Queue, n)
	for i := range queues {
		queues[i] = pipeline.Queue{Topic: topic, Broker: broker, ID: i}
	}

	return queues
}

func TestQueuesAreSharedByTheAveragingRule(t *testing.T) {
	t.Parallel()

	for name, c := range map[string]struct {
		queues  int
		members []string
		want    map[string][]int
	}{
		"one member":           {3, []string{"a"}, map[string][]int{"a": {0, 1, 2}}},
		"even":                 {4, []string{"a", "b"}, map[string][]int{"a": {0, 1}, "b": {2, 3}}},
		"the first get more":   {8, []string{"a", "b", "c"}, map[string][]int{"a": {0, 1, 2}, "b": {3, 4, 5}, "c": {6, 7}}},
		"one more than even":   {7, []string{"a", "b", "c"}, map[string][]int{"a": {0, 1, 2}, "b": {3, 4}, "c": {5, 6}}},
		"fewer than members":   {2, []string{"a", "b", "c"}, map[string][]int{"a": {0}, "b": {1}, "c": nil}},
		"as many as members":   {2, []string{"a", "b"}, map[string][]int{"a": {0}, "b": {1}}},
		"ids sort as strings":  {2, []string{"m9", "m10"}, map[string][]int{"m10": {0}, "m9": {1}}},
		"members in any order": {3, []string{"b", "a"}, map[string][]int{"a": {0, 1}, "b": {2}}},
		"a member twice":       {3, []string{"a", "b", "b"}, map[string][]int{"a": {0, 1}, "b": {2}}},
		"no queue":             {0, []string{"a"}, map[string][]int{"a": nil}},
		"not a member":         {3, []string{"a"}, map[string][]int{"z": nil}},
		"no member":            {3, nil, map[string][]int{"z": nil}},
	} {
		for me, want := range c.want {
			got := consumer.Allocate(queuesOf("t", "", c.queues), c.members, me)
			if !slices.EqualFunc(got, want, func(q pipeline.Queue, id int) bool { return q.ID == id }) {
				t.Errorf("%s: %s owns %v, want %v", name, me, got, want)
			}
		}
	}
}

func TestTopicsAreSharedEachOnItsOwn(t *testing.T) {
	t.Parallel()

	queues := slices.Concat(queuesOf("u", "", 1), queuesOf("t", "y", 2), queuesOf("t", "x", 1))
	slices.Reverse(queues)

	given := slices.Clone(queues)
	a := consumer.Allocate(queues, []string{"a", "b"}, "a")
	want := []pipeline.Queue{{Topic: "t", Broker: "x"}, {Topic: "t", Broker: "y"}, {Topic: "u"}}

	if !slices.Equal(a, want) {
		t.Errorf("a owns %v, want %v", a, want)
	}

	b := consumer.Allocate(queues, []string{"a", "b"}, "b")
	if want := []pipeline.Queue{{Topic: "t", Broker: "y", ID: 1}}; !slices.Equal(b, want) {
		t.Errorf("b owns %v, want %v", b, want)
	}

	if !slices.Equal(queues, given) {
		t.Errorf("the argument was changed: %v", queues)
	}
}

func TestQueuesAreDealtInACircle(t *testing.T) {
	t.Parallel()

	queues, members := slices.Concat(queuesOf("t", "y", 3), queuesOf("t", "x", 2), queuesOf("u", "", 1)), []string{"b", "a"}

	for me, want := range map[string][]pipeline.Queue{
		"a": {
			{Topic: "t", Broker: "x"},
			{Topic: "t", Broker: "y"},
			{Topic: "t", Broker: "y", ID: 2},
			{Topic: "u"},
		},
		"b": {{Topic: "t", Broker: "x", ID: 1}, {Topic: "t", Broker: "y", ID: 1}},
		"z": nil,
	} {
		if got := consumer.AllocateCircle(queues, members, me); !slices.Equal(got, want) {
			t.Errorf("%s owns %v, want %v", me, got, want)
		}
	}
}

func TestEveryQueueHasExactlyOneOwner(t *testing.T) {
	t.Parallel()

	for range 300 {
		seed := rand.Uint64()
		rnd := rand.New(rand.NewPCG(seed, 0))
		queues := slices.Concat(
			queuesOf("t", "x", rnd.IntN(20)), queuesOf("t", "y", rnd.IntN(20)), queuesOf("u", "", rnd.IntN(20)))

		members := make([]string, 1+rnd.IntN(12))
		for i := range members {
			members[i] = "m" + strconv.Itoa(i)
		}

		rule := consumer.Allocate
		if rnd.IntN(2) == 0 {
			rule = consumer.AllocateCircle
		}

		owners := map[pipeline.Queue]string{}
		sizes := map[string][]int{}

		for _, me := range members {
			size := map[string]int{}

			for _, q := range rule(queues, members, me) {
				if other, owned := owners[q]; owned {
					t.Fatalf("seed %d: %v belongs to %s and to %s", seed, q, other, me)
				}

				owners[q] = me
				size[q.Topic]++
			}

			for _, topic := range []string{"t", "u"} {
				sizes[topic] = append(sizes[topic], size[topic])
			}
		}

		if len(owners) != len(queues) {
			t.Fatalf("seed %d: %d of %d queues have an owner", seed, len(owners), len(queues))
		}

		for topic, n := range sizes {
			if slices.Max(n)-slices.Min(n) > 1 {
				t.Fatalf("seed %d: topic %s is shared unevenly: %v", seed, topic, n)
			}
		}
	}
}
