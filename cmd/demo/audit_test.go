package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/millrace/millrace/pipeline"
)

// perfect returns the evidence of runs in which everything went well, the last one at work.
func perfect(t *testing.T, clean ...bool) *evidence {
	t.Helper()

	e := &evidence{feed: feedOf(t, 1), finished: make(set), runs: &runs{Clean: append(clean, true)}}
	e.quakes.name, e.alertsTopic.name, e.quakesDead.name, e.alertsDead.name = "quakes", "topic", "dead", "dead alerts"
	e.archive.name, e.summaries.name, e.alerts.name = "archive", "summaries", "alerts"

	for _, event := range e.feed {
		e.quakes.entries = append(e.quakes.entries, mark{ID: event.id})
		e.finished[event.id] = true

		if event.class != "" {
			e.finish(mark{ID: event.id, Run: 1, Delivery: 1}, event.class == major)
		}
	}

	e.queues = []position{
		{group: quakesTopic, queue: pipeline.Queue{Topic: quakesTopic}, committed: 1707, end: 1707},
		{group: alertsTopic, queue: pipeline.Queue{Topic: alertsTopic}, committed: 39, end: 39},
	}

	return e
}

// finish enters an attempt at an earthquake into the books.
func (e *evidence) finish(m mark, isMajor bool) {
	e.archive.entries = append(e.archive.entries, m)
	e.summaries.entries = append(e.summaries.entries, m)

	if isMajor {
		e.alertsTopic.entries = append(e.alertsTopic.entries, m)
		e.alerts.entries = append(e.alerts.entries, mark{ID: m.attempt(), Run: m.Run, Delivery: 1})
	}
}

// majors returns the ids of the major earthquakes.
func (e *evidence) majors() []string {
	var ids []string

	for _, event := range e.feed {
		if event.class == major {
			ids = append(ids, event.id)
		}
	}

	return ids
}

// without removes the first entry of an id.
func (b *book) without(id string) {
	i := slices.IndexFunc(b.entries, func(m mark) bool { return m.ID == id })
	b.entries = slices.Delete(b.entries, i, i+1)
}

// other returns the id of an event that is no earthquake.
func (e *evidence) other() string {
	return e.feed[slices.IndexFunc(e.feed, func(e event) bool { return e.class == "" })].id
}

func TestThePerfectBooksBalance(t *testing.T) {
	t.Parallel()

	v := audit(perfect(t))

	if len(v.problems)+len(v.unfinished) > 0 {
		t.Errorf("problems %v, unfinished %v", v.problems, v.unfinished)
	}

	if want := (account{published: 1707, completed: 1679, filtered: 28}); v.quakes != want || !v.quakes.balanced() {
		t.Errorf("quakes: %+v, want %+v", v.quakes, want)
	}

	if want := (account{published: 39, completed: 39}); v.alerts != want || !v.alerts.balanced() {
		t.Errorf("alerts: %+v, want %+v", v.alerts, want)
	}

	for i, want := range []int{1679, 1679, 39, 39} {
		if s := v.sinks[i]; s.events != want || s.lines != want || s.repeats != 0 {
			t.Errorf("%s: %+v, want %d", s.name, s, want)
		}
	}
}

func TestEveryLossIsNamed(t *testing.T) {
	t.Parallel()

	for want, plant := range map[string]func(e *evidence, id string){
		"quakes: 1 is missing: ":    func(e *evidence, id string) { e.quakes.without(id) },
		"archive: 1 is missing: ":   func(e *evidence, id string) { e.archive.without(id) },
		"summaries: 1 is missing: ": func(e *evidence, id string) { e.summaries.without(id) },
		"topic: 1 is missing: ": func(e *evidence, id string) {
			e.topicAndFile(id)
		},
		"alerts: 1 is missing: ": func(e *evidence, id string) {
			e.alerts.without(mark{ID: id, Run: 1, Delivery: 1}.attempt())
		},
		"filter: 1 is not passed yet: ":                     func(e *evidence, _ string) { delete(e.finished, e.other()) },
		"quakes/0: group quakes has committed 1706 of 1707": func(e *evidence, _ string) { e.queues[0].committed-- },
	} {
		e := perfect(t)
		plant(e, e.majors()[5])
		v := audit(e)

		if len(v.problems) > 0 || len(v.unfinished) != 1 || !strings.HasPrefix(v.unfinished[0], want) {
			t.Errorf("%s problems %q, unfinished %q", want, v.problems, v.unfinished)
		}

		var said strings.Builder
		if v.conclude(&said, false) {
			t.Errorf("%s the books balance all the same: %s", want, said.String())
		}

		if !v.conclude(&said, true) {
			t.Errorf("%s a stopped run may leave things unfinished, but the books do not balance: %s", want, said.String())
		}
	}
}

func (e *evidence) topicAndFile(id string) {
	e.alertsTopic.without(id)
	e.alerts.without(mark{ID: id, Run: 1, Delivery: 1}.attempt())
}

func TestWhatShouldNotBeThereIsNamed(t *testing.T) {
	t.Parallel()

	for want, plant := range map[string]func(e *evidence, id string){
		"archive: 1 is there again without a redelivery or a killed run: ": func(e *evidence, id string) {
			e.archive.entries = append(e.archive.entries, mark{ID: id, Run: 1, Delivery: 1})
		},
		"summaries: 1 is there again without ": func(e *evidence, id string) {
			e.summaries.entries = append(e.summaries.entries, mark{ID: id, Run: 2, Delivery: 1})
		},
		"topic: 1 is there again without ": func(e *evidence, id string) {
			e.alertsTopic.entries = append(e.alertsTopic.entries, mark{ID: id, Run: 1, Delivery: 1})
		},
		"alerts: 1 is there again without ": func(e *evidence, _ string) {
			e.alerts.entries = append(e.alerts.entries, e.alerts.entries[0])
		},
		"quakes: 1 is there again without ": func(e *evidence, id string) {
			e.quakes.entries = append(e.quakes.entries, mark{ID: id})
		},
		"archive: 1 is there and should not be: unheard of": func(e *evidence, _ string) {
			e.archive.entries = append(e.archive.entries, mark{ID: "unheard of"})
		},
		"archive: 1 is there and should not be: ": func(e *evidence, _ string) {
			e.archive.entries = append(e.archive.entries, mark{ID: e.other(), Run: 1, Delivery: 1})
		},
		"dead: 1 is there and should not be: unheard of": func(e *evidence, _ string) {
			e.quakesDead.entries = append(e.quakesDead.entries, mark{ID: "unheard of"})
		},
		"quakes/0: group quakes has committed 1708, above the end 1707": func(e *evidence, _ string) {
			e.queues[0].committed++
		},
	} {
		e := perfect(t, true)
		plant(e, e.majors()[5])
		v := audit(e)

		if len(v.unfinished) > 0 || len(v.problems) != 1 || !strings.HasPrefix(v.problems[0], want) {
			t.Errorf("%s problems %q, unfinished %q", want, v.problems, v.unfinished)
		}

		for _, stopped := range []bool{false, true} {
			var said strings.Builder
			if v.conclude(&said, stopped) {
				t.Errorf("%s the books balance all the same: %s", want, said.String())
			}
		}
	}
}

func TestRepeatsWithAReasonAreCounted(t *testing.T) {
	t.Parallel()

	e := perfect(t, false, true)
	majors := e.majors()

	e.finish(mark{ID: majors[0], Run: 1, Delivery: 2}, true) // a redelivery
	e.finish(mark{ID: majors[1], Run: 2, Delivery: 1}, true) // run 1 was killed
	e.finish(mark{ID: majors[1], Run: 3, Delivery: 2}, true)

	v := audit(e)

	if len(v.problems)+len(v.unfinished) > 0 || !v.quakes.balanced() || !v.alerts.balanced() {
		t.Errorf("%+v", v)
	}

	for i, want := range [][2]int{{1679, 3}, {1679, 3}, {39, 3}, {42, 0}} {
		if s := v.sinks[i]; s.events != want[0] || s.repeats != want[1] || s.lines != want[0]+want[1] {
			t.Errorf("%s: %+v, want %v", s.name, s, want)
		}
	}

	e.finish(mark{ID: majors[2], Run: 1, Delivery: 1}, false) // in one run: no reason
	e.finish(mark{ID: majors[3], Run: 2, Delivery: 1}, false)
	e.finish(mark{ID: majors[3], Run: 3, Delivery: 1}, false) // run 2 was clean
	e.finish(mark{ID: majors[0], Run: 1, Delivery: 2}, false) // a redelivery, but entered twice

	if v := audit(e); len(v.problems) != 2 || !strings.HasPrefix(v.problems[0], "archive: 3 are there again") {
		t.Errorf("problems %q", v.problems)
	}
}

func TestDeadLettersAreATerminalState(t *testing.T) {
	t.Parallel()

	e := perfect(t)
	dead, deadAlert := e.majors()[0], mark{ID: e.majors()[1], Run: 1, Delivery: 1}.attempt()
	e.quakesDead.entries = []mark{{ID: dead}}
	e.alertsDead.entries = []mark{{ID: deadAlert}}

	// Both are in the files too. That is possible only when a run was killed.
	if v := audit(e); len(v.problems) != 4 {
		t.Errorf("problems %q, want one of each sink", v.problems)
	}

	e.runs = &runs{Clean: []bool{false, true}}
	if v := audit(e); len(v.problems) > 0 || v.quakes.completed != 1678 || !v.quakes.balanced() || !v.alerts.balanced() {
		t.Errorf("problems %q, %+v", v.problems, v.quakes)
	}

	e.runs = &runs{Clean: []bool{true}}
	e.archive.without(dead)
	e.summaries.without(dead)
	e.topicAndFile(dead)
	e.alerts.without(deadAlert)

	v := audit(e)
	if len(v.problems)+len(v.unfinished) > 0 {
		t.Errorf("problems %q, unfinished %q", v.problems, v.unfinished)
	}

	if want := (account{published: 1707, completed: 1678, filtered: 28, dead: 1}); v.quakes != want {
		t.Errorf("quakes: %+v, want %+v", v.quakes, want)
	}

	if want := (account{published: 38, completed: 37, dead: 1}); v.alerts != want {
		t.Errorf("alerts: %+v, want %+v", v.alerts, want)
	}

	e.quakesDead.entries = append(e.quakesDead.entries, mark{ID: dead})
	if v := audit(e); len(v.problems) != 1 || !strings.HasPrefix(v.problems[0], "dead: 1 is there again") {
		t.Errorf("problems %q, want a second dead letter", v.problems)
	}
}

func TestTheJobsCountersAreHeldAgainstTheBooks(t *testing.T) {
	t.Parallel()

	right := []counted{{job: quakesTopic, completed: 1679, filtered: 28}, {job: alertsTopic, completed: 39}}

	for want, plant := range map[string]func([]counted){
		"": func([]counted) {},
		"quakes: the job has counted 1678 completed, 28 filtered and 0 dead; the books say 1679, 28 and 0": func(c []counted) {
			c[0].completed--
		},
		"alerts: the job has counted 39 completed, 0 filtered and 1 dead; the books say 39, 0 and 0": func(c []counted) {
			c[1].dead++
		},
		"alerts: 1 contradictions in the job's own books": func(c []counted) { c[1].broken++ },
	} {
		counts := slices.Clone(right)
		plant(counts)

		v := audit(perfect(t))
		v.checkCounts(counts, true)

		if got := strings.Join(v.problems, "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}

	v := audit(perfect(t))
	v.checkCounts([]counted{{job: quakesTopic}}, false)

	if len(v.problems) > 0 {
		t.Errorf("the counters of a run that was not the only one: %v", v.problems)
	}
}
