package actors_test

import (
	"fmt"
	"strings"
)

// histogram counts kills by how much of what a kill may cost it has cost, in tenths; the last count is for all of it.
type histogram [11]int

func (h *histogram) add(repeats, bound int) { h[min(repeats*10/bound, 10)]++ }

// String returns a line for each tenth.
func (h *histogram) String() string {
	const columns = 50

	most := 1
	for _, n := range h {
		most = max(most, n)
	}

	var s strings.Builder
	for i, n := range h {
		fmt.Fprintf(&s, "%3d %% and more %5d %s\n", 10*i, n, strings.Repeat("#", (n*columns+most-1)/most))
	}

	return s.String()
}
