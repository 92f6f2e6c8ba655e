package actors

import (
	"slices"
	"time"

	"github.com/millrace/millrace/consumer/consumertest"
)

// heal ends all trouble.
func (p *plan) heal() {
	p.mu.Lock()
	p.notef("peace")
	p.outage = outage{}
	p.mu.Unlock()

	p.b.SetFaults(consumertest.Faults{})
	p.faulty.Store(false)

	for _, name := range names() {
		if proc := p.procs[name]; proc != nil && proc.r.Report() != nil {
			p.gone(name)
		}
	}

	p.beginAll(names()[0])
	p.resumeAll()
}

// settle is I5: it waits until everything is finished and committed, for a bounded time.
func (p *plan) settle() {
	const pause = 5 * time.Second

	bound := 15*time.Minute + p.paused()

	for waited := time.Duration(0); ; waited += pause {
		<-time.After(pause)
		p.look()

		var behind []string
		for member := range p.joined {
			behind = append(behind, p.b.Behind(harnessGroup, member, "in")...)
		}

		if len(behind) == 0 && p.inFlight == 0 {
			return
		}

		if waited >= bound {
			p.mu.Lock()
			p.breachf("I5", "after %s of peace there is still %v", bound, behind)
			p.mu.Unlock()
			p.explain()

			return
		}
	}
}

// paused is how long breakers may keep what fails for good: each time that one opens for such a message it is patient before a
// try is an attempt, and tries are at most its longest pause apart.
func (w *world) paused() time.Duration {
	var sum time.Duration

	for id := range w.expected {
		for i := range w.spec.channels {
			if _, bad := w.poisoned(i, id); bad {
				b := &w.spec.channels[i].breaker
				sum += (b.Patience + b.MaxPause) * time.Duration(w.spec.retry.Attempts)
			}
		}
	}

	return sum
}

// stopAll stops every process; what is finished needs no time.
func (p *plan) stopAll() {
	for _, name := range slices.Backward(names()) {
		proc := p.procs[name]
		if proc == nil {
			continue
		}

		p.stop(name, 10*time.Second)

		r := proc.r.Report()
		p.unclean = p.unclean || r == nil || !r.Clean

		if r == nil || r.UnfinishedCount > 0 {
			p.mu.Lock()
			p.breachf("drain", "%s had nothing to do and left something: %+v", name, r)
			p.mu.Unlock()
		}
	}
}

// restart is the last part of I6: after a clean stop nothing is done again.
func (p *plan) restart() {
	p.mu.Lock()
	p.finalRun = len(p.broken) == 0 && !p.unclean
	p.mu.Unlock()

	p.checkBooks()
	p.beginAll(names()[1])
	<-time.After(20 * time.Second)
	p.look()

	for _, name := range names() {
		p.stop(name, 0)
	}
}
