package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is rows of cells. The first column is aligned left, the others right.
type table [][]string

func (t table) writeTo(w io.Writer) {
	var widths []int

	for _, row := range t {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}

			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}

	for _, row := range t {
		var line strings.Builder

		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))

			if i == 0 {
				line.WriteString(cell + pad)
			} else {
				line.WriteString("  " + pad + cell)
			}
		}

		_, _ = fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}

	_, _ = fmt.Fprintln(w)
}

// counted is what a job has counted in this run. What a killed run has counted is gone with it.
type counted struct {
	job string
	// completed, filtered and dead are events; retried are repeats in place, sentBack and redelivered the ones through
	// the broker.
	completed, filtered, dead, retried, sentBack, redelivered int
	// panics are contained ones, hung the lanes that were replaced and have not come back.
	panics, hung int
	// broken are contradictions in the job's own books.
	broken int
}

// write prints the verdict: the jobs, what the sinks got, this run's counters, and the queues. Until says up to when the
// counters have counted.
func (v *verdict) write(w io.Writer, run []counted, until string) {
	v.jobs().writeTo(w)
	v.sinkLines().writeTo(w)

	if len(run) > 0 {
		runLines(run, until).writeTo(w)
	}

	v.queueLines().writeTo(w)
}

func (v *verdict) jobs() table {
	t := table{{"", "published", "completed", "filtered", "dead-lettered", "lag"}}

	for _, job := range []struct {
		name    string
		account account
	}{{quakesTopic, v.quakes}, {alertsTopic, v.alerts}} {
		queues, lag := 0, 0

		for _, p := range v.queues {
			if p.group == job.name {
				lag += p.lag()

				if p.queue.Topic == job.name {
					queues++
				}
			}
		}

		a := job.account
		t = append(t, []string{
			fmt.Sprintf("%s (%s)", job.name, plural(queues, "queue")),
			number(a.published), number(a.completed), number(a.filtered), number(a.dead), number(lag),
		})
	}

	return t
}

func (v *verdict) sinkLines() table {
	t := table{{"sink", "events", "repeated"}}
	for _, s := range v.sinks {
		t = append(t, []string{s.name, number(s.events), number(s.repeats)})
	}

	return t
}

func runLines(run []counted, until string) table {
	t := table{{
		"this run" + until, "completed", "filtered", "dead-lettered",
		"retried", "sent back", "redelivered", "panics", "hung lanes",
	}}

	for _, c := range run {
		row := []string{c.job}
		for _, n := range []int{
			c.completed, c.filtered, c.dead, c.retried, c.sentBack, c.redelivered, c.panics, c.hung,
		} {
			row = append(row, number(n))
		}

		t = append(t, row)
	}

	return t
}

func (v *verdict) queueLines() table {
	t := table{{"queue", "committed", "end", "lag"}}
	for _, p := range v.queues {
		t = append(t, []string{p.queue.String(), number(int(p.committed)), number(int(p.end)), number(p.lag())})
	}

	return t
}

// conclude prints whether the books balance and reports it. What is unfinished counts only where nothing should be.
func (v *verdict) conclude(w io.Writer, stopped bool) bool {
	wrong := v.problems
	if !stopped {
		wrong = append(wrong, v.unfinished...)
	}

	if len(wrong) > 0 {
		_, _ = fmt.Fprintf(w, "THE BOOKS DO NOT BALANCE:\n  %s\n", strings.Join(wrong, "\n  "))

		return false
	}

	switch a := v.quakes; {
	case len(v.unfinished) > 0:
		_, _ = fmt.Fprintf(w, "stopped: %s published = %s completed + %s filtered + %s dead-lettered + %s unfinished\n",
			number(a.published), number(a.completed), number(a.filtered), number(a.dead),
			number(a.published-a.completed-a.filtered-a.dead))
	default:
		_, _ = fmt.Fprintf(w, "books balance: %s published = %s completed + %s filtered + %s dead-lettered\n",
			number(a.published), number(a.completed), number(a.filtered), number(a.dead))
	}

	return true
}

// number writes n with commas: 1,707.
func number(n int) string {
	if n < 0 {
		return "-" + number(-n)
	}

	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}

	return s
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}

	return number(n) + " " + noun
}
