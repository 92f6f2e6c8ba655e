package consumertest

import (
	"math/rand/v2"
	"time"
)

// DrawFaults draws what a broker does wrong for a while: calls are refused, answered though they are not heard, or slow, and
// offsets are left out. It never lies about offsets; see [Faults].Wrong.
func DrawFaults(rnd *rand.Rand) Faults {
	const (
		kinds   = 5
		longest = 20_000 // milliseconds
		gaps    = 0.3
	)

	rates := func(ops ...Op) map[Op]float64 {
		m := make(map[Op]float64)

		for _, op := range ops {
			switch rnd.IntN(kinds) {
			case 0:
				m[op] = rnd.Float64()
			case 1:
				m[op] = 1
			}
		}

		return m
	}

	f := Faults{
		Refuse:        rates(OpPull, OpCommit, OpSendBack, OpDeadLetter, OpFind, OpStored, OpAssigned, OpRelease, OpLeave),
		Lose:          rates(OpCommit, OpSendBack, OpDeadLetter, OpRelease),
		Slow:          rates(OpPull, OpCommit, OpSendBack, OpDeadLetter, OpStored, OpRelease),
		Delay:         time.Duration(1+rnd.IntN(longest)) * time.Millisecond,
		PruneOnCommit: rnd.IntN(2) == 0,
	}

	if rnd.IntN(2) == 0 {
		f.Gap = rnd.Float64() * gaps
		f.Gaps = []int64{1, 3, 100, 1_000_000}
	}

	return f
}
