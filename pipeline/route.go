package pipeline

import "math/bits"

// Matches reports whether the route takes the message. It fails as [Route.Condition] does.
func (r *Route) Matches(m *Message) (bool, error) {
	if r.When != nil && !r.When(m) {
		return false, nil
	}

	if r.Condition == nil {
		return true, nil
	}

	return r.Condition(m)
}

// LaneOf returns the lane, from 0 to lanes-1, that a message belongs to.
//
// With [OrderByKey] messages of one key have one lane, with [OrderByQueue] those of one queue, and so have messages
// without a key under OrderByKey. With [OrderNone] any lane will do, and neighbours in a queue are spread over all of
// them. The lane depends on its arguments only: it is the same in every process and on every machine, so a job that is
// restarted keeps the lanes that logs and reports have named.
func LaneOf(m *Message, order Order, lanes int) int {
	switch {
	case lanes <= 1:
		return 0
	case order == OrderByKey && m.Key != "":
		return pick(hash(m.Key), lanes)
	case order == OrderNone:
		return int((uint64(m.Origin.Offset) + uint64(m.Origin.Queue.ID)) % uint64(lanes))
	default:
		// Only the names are hashed: queues that are numbered in a row get lanes in a row, so that few queues still
		// keep all lanes busy.
		q := &m.Origin.Queue

		return int((mix(hash(q.Topic)^hash(q.Broker)) + uint64(q.ID)) % uint64(lanes))
	}
}

// pick maps a hash to 0..n-1 by its upper bits, without a division.
func pick(h uint64, n int) int {
	lane, _ := bits.Mul64(h, uint64(n))

	return int(lane)
}

// hash mixes a string eight bytes at a time, one multiplication each. FNV-1a needs one for every byte and leaves the
// upper bits of short keys nearly equal; the hash of hash/maphash is another one in every process. Nothing here defends
// against keys that were chosen to collide: they keep one lane busy, no more.
func hash(s string) uint64 {
	h := uint64(len(s))

	for ; len(s) >= 8; s = s[8:] {
		h = mix(h ^ (uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56))
	}

	var tail uint64
	for i := range len(s) {
		tail |= uint64(s[i]) << (8 * i)
	}

	return mix(h ^ tail)
}

// mix spreads every bit of x over all bits: both halves of its product with the golden ratio's fraction, after the
// digits of pi have kept zero from staying zero.
func mix(x uint64) uint64 {
	const pi, goldenRatio = 0x243f6a8885a308d3, 0x9e3779b97f4a7c15

	hi, lo := bits.Mul64(x^pi, goldenRatio)

	return hi ^ lo
}
