package pipeline

import (
	"fmt"
	"strings"
)

// Suggest returns the cure for a name that is not among the known ones: the one that was probably meant, or all of them, in
// their order. It is for error messages, and reads on after a semicolon.
func Suggest(name string, known []string) string {
	if i := nearest(name, known); i >= 0 {
		return fmt.Sprintf("did you mean %q?", known[i])
	}

	if len(known) == 0 {
		return "there are none"
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

// editDistance counts the letters to insert, remove, replace or swap with their neighbour to get from a to b; lengths that
// need more than limit are not looked at.
func editDistance(a, b string, limit int) int {
	if len(a)-len(b) > limit || len(b)-len(a) > limit {
		return limit + 1
	}

	// The rows of the table for the first i letters of a, and for one and two letters fewer.
	row, above, twoAbove := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}

	for i := 1; i <= len(a); i++ {
		row, above, twoAbove = twoAbove, row, above
		row[0] = i

		for j := 1; j <= len(b); j++ {
			replace := above[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}

			row[j] = min(replace, row[j-1]+1, above[j]+1)

			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], twoAbove[j-2]+1)
			}
		}
	}

	return row[len(b)]
}
