package consumer

import (
	"cmp"
	"slices"

	"github.com/millrace/millrace/pipeline"
)

// Allocate returns the queues that the member me owns when the members of a group share them by RocketMQ's averaging
// rule: each topic is shared on its own; its queues, sorted, are cut into blocks, one a member in the order of their ids;
// the blocks are as even as they can be, and the first members get the bigger ones. The answer is sorted by topic, broker
// and id, and nil when me is not among the members. All members must call it with the same queues and members, in any
// order. The arguments are not changed.
func Allocate(queues []pipeline.Queue, members []string, me string) []pipeline.Queue {
	ids := slices.Compact(slices.Sorted(slices.Values(members)))
	rank, found := slices.BinarySearch(ids, me)

	if !found {
		return nil
	}

	var owned []pipeline.Queue

	rest := slices.SortedFunc(slices.Values(queues), CompareQueues)
	for len(rest) > 0 {
		end := 1
		for end < len(rest) && rest[end].Topic == rest[0].Topic {
			end++
		}

		from, to := block(end, len(ids), rank)
		owned = append(owned, rest[from:to]...)
		rest = rest[end:]
	}

	return owned
}

// block returns which of n sorted things belong to the member number rank.
func block(n, members, rank int) (from, to int) {
	size, bigger := n/members, n%members
	from = rank*size + min(rank, bigger)
	to = from + size

	if rank < bigger {
		to++
	}

	return from, to
}

// CompareQueues orders queues by topic, broker and id.
func CompareQueues(a, b pipeline.Queue) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Broker, b.Broker), cmp.Compare(a.ID, b.ID))
}
