package main

import (
	"fmt"
	"slices"
)

// line is one line of the table: a value, and what was promised about it.
type line struct {
	section, what string
	value         float64
	unit          string
	promise       string
	broken        bool
}

func newLine(section, what string, value float64, unit string) line {
	return line{section: section, what: what, value: value, unit: unit}
}

// String formats the line.
func (l line) String() string {
	verdict := ""

	switch {
	case l.broken:
		verdict = "BROKEN"
	case l.promise != "":
		verdict = "kept"
	}

	return fmt.Sprintf("%-9s %-44s %10.3f %-10s %-12s %s", l.section, l.what, l.value, l.unit, l.promise, verdict)
}

// atLeast adds a lower limit to a line.
func (l line) atLeast(limit float64) line {
	l.promise, l.broken = fmt.Sprintf(">= %g", limit), l.value < limit

	return l
}

// atMost adds an upper limit to a line.
func (l line) atMost(limit float64) line {
	l.promise, l.broken = fmt.Sprintf("<= %g", limit), l.value > limit

	return l
}

// turns measures a and b by turns, once for warming up and then rounds times. It returns the medians of both and of the
// ratios a/b of neighbours, which a slow phase of the machine hits alike.
func turns(rounds int, a, b func() (float64, error)) (medianA, medianB, ratio float64, err error) {
	var as, bs, ratios []float64

	for i := range rounds + 1 {
		va, err := a()
		if err != nil {
			return 0, 0, 0, err
		}

		vb, err := b()
		if err != nil {
			return 0, 0, 0, err
		}

		if i > 0 {
			as, bs, ratios = append(as, va), append(bs, vb), append(ratios, va/vb)
		}
	}

	return median(as), median(bs), median(ratios), nil
}

func median(values []float64) float64 {
	slices.Sort(values)

	return values[len(values)/2]
}
