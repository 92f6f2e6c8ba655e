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
	return share(queues, members, me, func(topic []pipeline.Queue, n, rank int) []pipeline.Queue {
		from, to := block(len(topic), n, rank)

		return topic[from:to]
	})
}

// AllocateCircle is [Allocate] by RocketMQ's rule of the circle: the queues of a topic are dealt one by one, as cards are.
func AllocateCircle(queues []pipeline.Queue, members []string, me string) []pipeline.Queue {
	return share(queues, members, me, func(topic []pipeline.Queue, n, rank int) []pipeline.Queue {
		var dealt []pipeline.Queue
		for i := rank; i < len(topic); i += n {
			dealt = append(dealt, topic[i])
		}

		return dealt
	})
}

// share shares each topic on its own, of whose sorted queues pick returns those of the member number rank of n.
func share(
	queues []pipeline.Queue, members []string, me string, pick func(topic []pipeline.Queue, n, rank int) []pipeline.Queue,
) []pipeline.Queue {
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

		owned = append(owned, pick(rest[:end], len(ids), rank)...)
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
