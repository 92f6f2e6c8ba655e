package jobfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxMistakes bounds how many mistakes of one file are told. Whoever has that many begins with the first.
const maxMistakes = 100

// Place is where something stands in a file: a line and a column, both from 1, the column in characters.
type Place struct {
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Mistake is one thing that is wrong with a job file.
type Mistake struct {
	Place

	// File is the name that was given to [Parse].
	File string `json:"file"`
	// Problem says what is wrong, with the name of the thing, and what to do about it.
	Problem string `json:"problem"`
}

// String returns "file:line:column  problem".
func (m Mistake) String() string { return m.position() + "  " + m.Problem }

func (m Mistake) position() string {
	return m.File + ":" + strconv.Itoa(m.Line) + ":" + strconv.Itoa(m.Column)
}

// Error is returned by [Parse] for a file with mistakes.
type Error struct {
	// Mistakes are all that were found, in the order of their places; at least one.
	Mistakes []Mistake
}

var _ error = (*Error)(nil)

// Error returns one line for each mistake.
func (e *Error) Error() string {
	width := 0
	for _, mistake := range e.Mistakes {
		width = max(width, len(mistake.position()))
	}

	lines := make([]string, len(e.Mistakes))
	for i, mistake := range e.Mistakes {
		lines[i] = fmt.Sprintf("%-*s  %s", width, mistake.position(), mistake.Problem)
	}

	return strings.Join(lines, "\n")
}

// mistakes are what a file's reading has found so far.
type mistakes []Mistake

// without leaves out what follows a first mistake at one of some places.
func (m mistakes) without(places map[Place]bool) mistakes {
	told := make(map[Place]bool)

	return slices.DeleteFunc(m, func(mistake Mistake) bool {
		again := places[mistake.Place] && told[mistake.Place]
		told[mistake.Place] = true

		return again
	})
}

// sorted returns the mistakes by place, each once, and at most maxMistakes of them.
func (m mistakes) sorted() mistakes {
	slices.SortStableFunc(m, func(a, b Mistake) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})

	m = slices.Compact(m)

	if more := len(m) - maxMistakes; more > 0 {
		m = m[:maxMistakes]
		m[maxMistakes-1].Problem = fmt.Sprintf("there are %d more mistakes from here on; correct those above first", more+1)
	}

	return m
}
