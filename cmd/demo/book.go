package main

import (
	"fmt"
	"slices"
	"strings"
)

// book is what one place, a file or a topic, holds of events.
type book struct {
	// name is the file or topic.
	name    string
	entries []mark
}

// set is a set of event ids.
type set map[string]bool

// balance is what came out of checking a book.
type balance struct {
	name string
	// lines is the number of entries: events the first ones of their ids, repeats the others.
	lines, events, repeats int
	// missing are the ids that should be there and are not, foreign the reverse.
	missing, foreign []string
	// unexplained are the repeats without a reason.
	unexplained []string
}

// check holds a book against the ids that should be in it. An entry may be there again when the broker has delivered the
// event again, which its mark says, or when a run was killed since the entry before it. Ids in late may be there, but need
// not, when a run was killed.
func (b *book) check(want, late set, r *runs) balance {
	result := balance{name: b.name, lines: len(b.entries)}
	last := make(map[string]mark, len(want))
	seen := make(map[mark]bool, len(b.entries))

	for _, e := range b.entries {
		before, again := last[e.ID]

		switch {
		case again:
			result.repeats++

			if seen[e] || e.Delivery <= 1 && !r.killedSince(before.Run, e.Run) {
				result.unexplained = append(result.unexplained, e.attempt())
			}
		case want[e.ID]:
			result.events++
		case !late[e.ID] || !r.killedSince(1, e.Run+1):
			result.foreign = append(result.foreign, e.ID)
		}

		last[e.ID] = e
		seen[e] = true
	}

	for id := range want {
		if _, ok := last[id]; !ok {
			result.missing = append(result.missing, id)
		}
	}

	slices.Sort(result.missing)

	return result
}

// problems says what is in the book and should not be.
func (b *balance) problems() []string {
	var found []string

	if len(b.foreign) > 0 {
		found = append(found, sentence(b.name, b.foreign, "there and should not be"))
	}

	if len(b.unexplained) > 0 {
		found = append(found, sentence(b.name, b.unexplained, "there again without a redelivery or a killed run"))
	}

	return found
}

// sentence returns "archive.jsonl: 5 are missing: a, b, c, …".
func sentence(name string, ids []string, what string) string {
	const shown = 3

	verb, rest := "are", ""
	if len(ids) == 1 {
		verb = "is"
	}

	if len(ids) > shown {
		rest = ", …"
	}

	return fmt.Sprintf("%s: %d %s %s: %s%s", name, len(ids), verb, what, strings.Join(ids[:min(shown, len(ids))], ", "), rest)
}
