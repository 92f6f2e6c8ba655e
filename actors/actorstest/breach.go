package actorstest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/pipeline"
)

// anyOffset is the offset of a place that means a queue as a whole.
const anyOffset pipeline.Offset = -1

// line is a line of what has happened: to a message, to a queue, or to everybody.
type line struct {
	at   time.Duration
	of   place
	id   string
	text string
}

// breach is a rule that was seen broken.
type breach struct {
	line

	rule string
	// index is how much had happened by then.
	index int
}

// notef writes down what happens. The caller holds mu, here and below.
func (c *course) notef(of place, id, format string, args ...any) {
	c.trace = append(c.trace, line{at: time.Since(c.began), of: of, id: id, text: fmt.Sprintf(format, args...)})
}

// breakf notes that a rule was broken.
func (c *course) breakf(rule string, of place, id, format string, args ...any) {
	c.notef(of, id, "BROKEN "+rule+": "+format, args...)

	const most = 5

	if len(c.breaches) < most {
		last := len(c.trace) - 1
		b := breach{rule: rule, line: c.trace[last], index: last}
		b.text = fmt.Sprintf(format, args...)
		c.breaches = append(c.breaches, b)
	}
}

func (c *course) clock(at time.Time) time.Duration { return at.Sub(c.began) }

func (l line) String() string { return fmt.Sprintf("%12s  %s%s", l.at, l.subject(), l.text) }

// subject names what a line is about.
func (l line) subject() string {
	switch {
	case l.of.queue == (pipeline.Queue{}) && l.id == "":
		return ""
	case l.of.queue == (pipeline.Queue{}):
		return l.id + ": "
	case l.of.offset == anyOffset:
		return l.of.queue.String() + ": "
	default:
		return fmt.Sprintf("%s (%s): ", l.of, l.id)
	}
}

// concerns says whether a line tells what has led to a breach.
func (b *breach) concerns(l line) bool {
	switch {
	case l.of.queue == (pipeline.Queue{}) && l.id == "":
		return true
	case b.id != "" && l.id == b.id:
		return true
	case l.of.offset == anyOffset:
		return l.of.queue == b.of.queue
	default:
		return l.of == b.of
	}
}

// story is what has happened to the message and its queue up to a breach, the last of it.
func (c *course) story(b *breach) []string {
	const most = 25

	var lines []string

	for _, l := range slices.Backward(c.trace[:b.index]) {
		if b.concerns(l) {
			lines = append(lines, "  "+l.String())
		}

		if len(lines) == most {
			lines = append(lines, "  …")

			break
		}
	}

	slices.Reverse(lines)

	return lines
}

// verdict says which rules were broken, and by what; empty when none was.
func (c *course) verdict() string {
	var text strings.Builder

	for i := range c.breaches {
		b := &c.breaches[i]
		fmt.Fprintf(&text, "%s: %s%s\n", b.rule, b.subject(), b.text)

		if i == 0 {
			fmt.Fprintf(&text, "%s\n", strings.Join(c.story(b), "\n"))
		}
	}

	return text.String()
}

// site names a call's place in the job.
func (c *course) site(channel, stage int) string {
	ch := &c.plan.Job.Channels[channel]

	switch {
	case stage >= 0:
		return ch.Name + "/" + ch.Stages[stage].Name
	case ch.Gather != nil:
		return ch.Name + "/gather"
	default:
		return ch.Name + "/sink"
	}
}

// describe says what of a message is still on its way.
func (w *whole) describe(c *course) string {
	if w.size() == 0 {
		return "nothing of it is left"
	}

	said := []string{fmt.Sprintf("%d parts of it are open", w.size())}

	for channel, n := range w.routed {
		said = append(said, fmt.Sprintf("%d on the way to %s", n, c.plan.Job.Channels[channel].Name))
	}

	slices.Sort(said[1:])

	return strings.Join(said, ", ")
}
