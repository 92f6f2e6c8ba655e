package pipeline

import (
	"fmt"
	"strings"
)

// suggest returns the cure for a name that is not among the known ones: the one that was probably meant, or all of them.
func suggest(name string, known []string) string {
	if i := nearest(name, known); i >= 0 {
		return fmt.Sprintf("did you mean %q?", known[i])
	}

	return "there are: " + strings.Join(known, ", ")
}

// nearest returns the index of the known name that takes the fewest edits to get to, or -1 when none is near enough to
// be a slip of the pen: one edit, and one more for every four letters (a guess).
func nearest(name string, known []string) int {
	const lettersPerEdit = 4

	limit, found := 1+len(name)/lettersPerEdit, -1

	for i, k := range known {
		if d := editDistance(strings.ToLower(name), strings.ToLower(k), limit); d <= limit {
			limit, found = d-1, i
		}
	}

	return found
}

// editDistance counts the letters to insert, remove or replace to get from a to b; lengths that need more than
// limit are not looked at.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}

	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1

		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}

			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, diagonal+1)
		}
	}

	return row[len(b)]
}
