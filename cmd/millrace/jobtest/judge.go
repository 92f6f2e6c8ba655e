package jobtest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/pipeline/jobfile"
)

// judge holds what came out against what was expected.
func (w *world) judge() []Problem {
	w.mu.Lock()
	defer w.mu.Unlock()

	var (
		problems []Problem
		sinks    []string
	)

	for _, use := range w.job.Sinks() {
		sinks = append(sinks, use.Channel)
	}

	for _, name := range slices.Sorted(maps.Keys(w.c.Out)) {
		if !slices.Contains(sinks, name) {
			problems = append(problems, Problem{
				Place: w.c.Place,
				Lines: []string{fmt.Sprintf("no channel with a sink is called %q; %s", name, pipeline.Suggest(name, sinks))},
			})
		}
	}

	for _, name := range sinks {
		if !slices.Contains(w.c.Any, name) {
			problems = append(problems, w.judgeSink(name)...)
		}
	}

	return append(problems, w.judgeFailures()...)
}

// judgeSink pairs the messages that a sink got with the expected ones: first those that fit, and then, to say how they
// differ, the ones that are left, those of the same key before others.
func (w *world) judgeSink(name string) []Problem {
	want, got := slices.Clone(w.c.Out[name]), slices.Clone(w.got[name])

	want = slices.DeleteFunc(want, func(m jobfile.TestMessage) bool {
		i := slices.IndexFunc(got, func(g *pipeline.Message) bool { return len(differences(m, g)) == 0 })
		if i >= 0 {
			got = slices.Delete(got, i, i+1)
		}

		return i >= 0
	})

	var problems []Problem

	for _, m := range want {
		if len(got) == 0 {
			problems = append(problems, Problem{
				Place: m.Place, Lines: []string{name + ": this message did not come:", "  " + shownExpected(m)},
			})

			continue
		}

		i := max(slices.IndexFunc(got, func(g *pipeline.Message) bool { return m.Key != nil && g.Key == *m.Key }), 0)
		lines := []string{name + ": a message differs:"}

		for _, d := range differences(m, got[i]) {
			lines = append(lines, "  "+d)
		}

		problems = append(problems, Problem{Place: m.Place, Lines: lines})
		got = slices.Delete(got, i, i+1)
	}

	for _, m := range got {
		problems = append(problems, Problem{
			Place: w.c.Place, Lines: []string{name + ": nobody expected this message:", "  " + shown(m)},
		})
	}

	return problems
}

// judgeFailures pairs the dead letters with the expected failures.
func (w *world) judgeFailures() []Problem {
	topic := w.job.DeadLetters()
	if topic == "" {
		topic = consumer.DeadLetterTopic(w.job.Group())
	}

	var problems []Problem

	dead := w.broker.Messages(topic)

	for _, f := range w.c.Fail {
		i := slices.IndexFunc(dead, func(m *pipeline.Message) bool { return fits(f, m) })
		if i >= 0 {
			dead = slices.Delete(dead, i, i+1)

			continue
		}

		lines := []string{"no message failed as expected: " + shownFailure(f)}
		for _, m := range dead {
			lines = append(lines, "  but this one failed: "+shownDead(m))
		}

		problems = append(problems, Problem{Place: f.Place, Lines: lines})
	}

	if len(problems) > 0 {
		return problems // they name the others already
	}

	for _, m := range dead {
		problems = append(problems, Problem{
			Place: w.c.Place, Lines: []string{"a message failed: " + shownDead(m), "  " + shown(m)},
		})
	}

	return problems
}

func fits(f jobfile.Failure, m *pipeline.Message) bool {
	return (f.Stage == "" || f.Stage == m.Props[consumer.PropDeadStage]) &&
		strings.Contains(m.Props[consumer.PropDeadError], f.Error) && (f.Key == nil || *f.Key == m.Key)
}

func shownFailure(f jobfile.Failure) string {
	var parts []string

	if f.Key != nil {
		parts = append(parts, fmt.Sprintf("key %q", *f.Key))
	}

	if f.Stage != "" {
		parts = append(parts, "in "+f.Stage)
	}

	if f.Error != "" {
		parts = append(parts, fmt.Sprintf("with %q", f.Error))
	}

	return strings.Join(parts, " ")
}

func shownDead(m *pipeline.Message) string {
	text := fmt.Sprintf("in %s, with %q", m.Props[consumer.PropDeadStage], m.Props[consumer.PropDeadError])
	if m.Key != "" {
		text = fmt.Sprintf("key %q ", m.Key) + text
	}

	return text
}
