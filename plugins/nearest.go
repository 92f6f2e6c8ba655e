package plugins

// nearest returns the known name that takes the fewest typing mistakes to become name, when they are few enough for the
// one to be meant by the other: a third of its length.
func nearest(name string, known []string) (string, bool) {
	best, found := "", false
	limit := max(1, len(name)/3) + 1

	for _, k := range known {
		if d := distance(name, k); d < limit {
			best, found, limit = k, true, d
		}
	}

	return best, found
}

// distance counts the letters to insert, remove, replace or swap with their neighbour to make b of a.
func distance(a, b string) int {
	var before []int // the row before the previous one, for swaps

	previous := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}

	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i

		for j := 1; j <= len(b); j++ {
			replaced := previous[j-1]
			if a[i-1] != b[j-1] {
				replaced++
			}

			row[j] = min(previous[j]+1, row[j-1]+1, replaced)

			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}

		before, previous = previous, row
	}

	return previous[len(b)]
}
