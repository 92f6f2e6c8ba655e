package main

import (
	"fmt"
	"slices"

	"github.com/millrace/millrace/pipeline"
)

// evidence is everything that runs leave on disk. The audit trusts it alone, and no counter of a job.
type evidence struct {
	// feed are the events that should be in the topic.
	feed []event
	// The topics: what was published, what was derived, and the dead letters of both jobs. Marks of quakes and of dead
	// letters have an id only.
	quakes, alertsTopic, quakesDead, alertsDead book
	// The files.
	archive, summaries, alerts book
	// finished are the events whose offset the first job has passed.
	finished set
	// queues are the queues of both groups, their retry topics included.
	queues []position
	runs   *runs
}

// position is how far a group is in a queue.
type position struct {
	group          string
	queue          pipeline.Queue
	committed, end pipeline.Offset
}

func (p *position) lag() int { return int(p.end - p.committed) }

// verdict is what the audit found.
type verdict struct {
	quakes, alerts account
	// sinks are the books that the jobs write.
	sinks  []balance
	queues []position
	// unfinished says what is not there yet; it is a loss unless the run was stopped.
	unfinished []string
	// problems says what should not be there.
	problems []string
}

// account sums up one job, in events.
type account struct {
	published, completed, filtered, dead int
}

func (a account) balanced() bool { return a.published == a.completed+a.filtered+a.dead }

// audit reconciles what was published with what became of it.
func audit(e *evidence) *verdict {
	v := &verdict{queues: e.queues}

	all := make(set)
	for _, event := range e.feed {
		all[event.id] = true
	}

	published := v.check(&e.quakes, all, nil, e.runs)
	dead := v.deadLetters(&e.quakesDead, all, e.runs)
	quakes, majors, others := sortOut(e.feed, dead)
	filtered := v.filtered(others, e.finished)
	archive := v.check(&e.archive, quakes, dead, e.runs)
	summaries := v.check(&e.summaries, quakes, dead, e.runs)
	topic := v.check(&e.alertsTopic, majors, dead, e.runs)

	// An alert that is in the topic again is another message for the second job.
	derived := make(set)
	for _, m := range e.alertsTopic.entries {
		derived[m.attempt()] = true
	}

	deadAlerts := v.deadLetters(&e.alertsDead, derived, e.runs)
	alive := make(set)

	for id := range derived {
		if !deadAlerts[id] {
			alive[id] = true
		}
	}

	alerts := v.check(&e.alerts, alive, deadAlerts, e.runs)

	v.sinks = []balance{archive, summaries, topic, alerts}
	v.quakes = account{published: published.events, completed: archive.events, filtered: filtered, dead: len(dead)}
	v.alerts = account{published: len(derived), completed: alerts.events, dead: len(deadAlerts)}
	v.checkPositions()

	return v
}

// sortOut returns the earthquakes, the major ones among them, and the other events, all without the dead ones.
func sortOut(feed []event, dead set) (quakes, majors, others set) {
	quakes, majors, others = make(set), make(set), make(set)

	for _, event := range feed {
		switch {
		case dead[event.id]:
		case event.class == "":
			others[event.id] = true
		case event.class == major:
			majors[event.id] = true
			quakes[event.id] = true
		default:
			quakes[event.id] = true
		}
	}

	return quakes, majors, others
}

// filtered counts the events that had to be filtered and have been passed; in no book, else they are foreign there.
func (v *verdict) filtered(others, finished set) int {
	var waiting []string

	for id := range others {
		if !finished[id] {
			waiting = append(waiting, id)
		}
	}

	if len(waiting) > 0 {
		v.unfinished = append(v.unfinished, sentence("filter", slices.Sorted(slices.Values(waiting)), "not passed yet"))
	}

	return len(others) - len(waiting)
}

// check balances a book and notes what is wrong with it.
func (v *verdict) check(b *book, want, late set, r *runs) balance {
	result := b.check(want, late, r)
	v.problems = append(v.problems, result.problems()...)

	if len(result.missing) > 0 {
		v.unfinished = append(v.unfinished, sentence(b.name, result.missing, "missing"))
	}

	return result
}

// deadLetters returns the ids in a dead-letter topic, which may hold any of the published ones, once each.
func (v *verdict) deadLetters(b *book, published set, r *runs) set {
	dead := make(set)

	for _, e := range b.entries {
		if published[e.ID] {
			dead[e.ID] = true
		}
	}

	v.check(b, dead, nil, r)

	return dead
}

// checkPositions sees to it that both groups have read everything.
func (v *verdict) checkPositions() {
	for _, p := range v.queues {
		switch lag := p.lag(); {
		case lag > 0:
			v.unfinished = append(v.unfinished, fmt.Sprintf("%s: group %s has committed %d of %d: lag %d",
				p.queue, p.group, p.committed, p.end, lag))
		case lag < 0:
			v.problems = append(v.problems, fmt.Sprintf("%s: group %s has committed %d, above the end %d",
				p.queue, p.group, p.committed, p.end))
		}
	}
}

// checkCounts holds what the jobs have counted against their own sums and, when fresh says that one run has done it all,
// against the books.
func (v *verdict) checkCounts(run []counted, fresh bool) {
	for _, c := range run {
		if c.broken > 0 {
			v.problems = append(v.problems, fmt.Sprintf("%s: %d contradictions in the job's own books", c.job, c.broken))
		}

		want := v.quakes
		if c.job == alertsTopic {
			want = v.alerts
		}

		if got := (account{want.published, c.completed, c.filtered, c.dead}); fresh && got != want {
			v.problems = append(v.problems, fmt.Sprintf(
				"%s: the job has counted %d completed, %d filtered and %d dead; the books say %d, %d and %d",
				c.job, got.completed, got.filtered, got.dead, want.completed, want.filtered, want.dead))
		}
	}
}
