package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// number writes a number with commas between its thousands.
func number[N int | int64 | pipeline.Offset](n N) string {
	digits := strconv.FormatInt(int64(n), 10)
	sign := ""

	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}

	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}

	return sign + digits
}

// plural writes a count of things: 1 message, 2 messages.
func plural(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}

	return number(n) + " " + thing + "s"
}

// clockTime writes a time span as hours, minutes and seconds.
func clockTime(d time.Duration) string {
	s := int(d.Seconds())

	return fmt.Sprintf("%02d:%02d:%02d", s/3600, s/60%60, s%60)
}

// span writes a time span as people say it, in its two greatest units.
func span(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Hour:
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	default:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
}

// rate writes how many of something there were a second.
func rate(n int64, d time.Duration) string {
	if d <= 0 {
		return "0/s"
	}

	perSecond := float64(n) / d.Seconds()
	if perSecond > 0 && perSecond < 10 {
		return strconv.FormatFloat(perSecond, 'f', 1, 64) + "/s"
	}

	return number(int64(perSecond+0.5)) + "/s"
}

// table writes rows in columns that are as wide as their widest cell.
func table(rows [][]string) string { return columns(rows, func(int) bool { return false }) }

// numberTable writes rows as table does, with numbers in all columns but the first and the last, which stand at the right.
func numberTable(rows [][]string) string {
	return columns(rows, func(i int) bool { return i > 0 && i < len(rows[0])-1 })
}

func columns(rows [][]string, right func(column int) bool) string {
	var widths []int

	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}

			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}

	var b strings.Builder

	for _, row := range rows {
		var line strings.Builder

		for i, cell := range row {
			gap := strings.Repeat(" ", widths[i]-len([]rune(cell)))

			if right(i) {
				line.WriteString(gap + cell + "  ")
			} else {
				line.WriteString(cell + gap + "  ")
			}
		}

		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}

	return b.String()
}
