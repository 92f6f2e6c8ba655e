package actors

import "time"

// outage is a dependency that is down: every call of one stage, or of one sink, does the same bad deed until it is up again.
type outage struct {
	channel, stage int
	deed           deed
	began, until   time.Time
}

func (o *outage) hits(channel, stage int) bool {
	return o.deed != deedWork && o.channel == channel && o.stage == stage && time.Now().Before(o.until)
}

// fell lets something that a stage or a sink needs be down for a while: calls are refused, at once or with a wish for another
// try, or last until their deadline.
func (p *plan) fell() {
	channel := p.rnd.IntN(len(p.spec.channels))
	c := &p.spec.channels[channel]
	stage := p.rnd.IntN(len(c.stages) + 1)

	if stage == len(c.stages) {
		if stage = endOf; len(c.routes) > 0 && c.gather == gatherNot {
			stage = 0
		}
	}

	now := time.Now()
	o := outage{
		channel: channel, stage: stage, began: now, until: now.Add(p.UpTo(2 * time.Minute)),
		deed: []deed{deedFail, deedFail, deedAgain, deedStuck}[p.rnd.IntN(4)],
	}

	p.mu.Lock()
	p.stats.outages++
	p.outage = o
	p.notef("%s is down for %s, deed %d", p.spec.site(channel, stage), o.until.Sub(now), o.deed)
	p.mu.Unlock()

	p.publish(1 + p.rnd.IntN(40))
}

// gate is what is known of one channel's breaker, in one process.
type gate struct {
	open   bool
	opened time.Time
	// held are the attempts that it holds since an instant, which may be that of its closing.
	held    []attempt
	instant time.Time
	// row counts, by stage, the calls that have failed in an outage one after the other at the first attempts of messages.
	row map[int]int
}

func newGates(n int) []gate {
	gates := make([]gate, n)
	for i := range gates {
		gates[i].row = make(map[int]int)
	}

	return gates
}

// manner is how a call fails.
type manner uint8

const (
	// plainly: it fails now, as when something is down.
	plainly manner = iota
	rejecting
	// lasting: it will be past its deadline some time, and is an attempt of messages that can't be held.
	lasting
)

// fail notes that parts of messages have failed in a call. It is an attempt, unless the breaker holds it: what fails at the
// very instant at which that opens or closes is given the benefit of the doubt.
func (w *world) fail(c *call, of []ref, how manner) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.stats.failures++

	b, g, now := &w.spec.channels[c.channel].breaker, &c.p.gates[c.channel], time.Now()
	holds := how == plainly && g.open && now.After(g.opened) && now.Before(g.opened.Add(b.Patience))

	if !holds && how == plainly && !g.open && w.outage.hits(c.channel, c.stage) && !c.since.Before(w.outage.began) {
		c.p.missed(c)
	}

	if !g.instant.Equal(now) {
		g.held, g.instant = g.held[:0], now
	}

	for _, r := range of {
		if holds {
			w.held[r.attempt] = true
			g.held = append(g.held, r.attempt)

			continue
		}

		w.failed[r.attempt]++

		if how == rejecting {
			w.rejected[r.id] = true
		}
	}
}

// missed counts a call that an outage has failed, and finds a breaker that does not open: first attempts alone must fill its
// window, once each lane has told what went well before. The caller holds mu.
func (p *proc) missed(c *call) {
	w := p.w
	spec, row := &w.spec.channels[c.channel], p.gates[c.channel].row

	for _, r := range c.blame {
		if r.queue.Topic != "in" || w.failed[r.attempt] > 0 {
			return
		}
	}

	row[c.stage]++

	if most := spec.breaker.Window + spec.lanes + 1; !spec.breaker.Off && row[c.stage] > most && !p.crashed {
		w.breachf("breaker", "%s: %d calls of %s have failed in a row, and its breaker is not open", p.name, row[c.stage], w.where(c))
	}
}

// noteEnd ends a row of failures when a call ends that began before the outage. The caller holds mu.
func (w *world) noteEnd(c *call) {
	if c.since.Before(w.outage.began) {
		delete(c.p.gates[c.channel].row, c.stage)
	}
}

// checkFailed checks that an attempt that is given up has failed, in a way that counts. The caller holds mu.
func (w *world) checkFailed(what, id string, a attempt) {
	if w.failed[a] > 0 {
		return
	}

	if w.held[a] {
		w.breachf("breaker", "%s of %s, which has failed only while the breaker was open", what, id)

		return
	}

	w.breachf("cancelled is not failed", "%s of %s, of which nothing has failed", what, id)
}

func (p *proc) gateOf(channel string) *gate {
	for i := range p.gates {
		if p.w.spec.channels[i].name == channel {
			return &p.gates[i]
		}
	}

	p.w.breachf("breaker", "%s knows of a channel %s", p.name, channel)

	return &gate{}
}

// onOpened notes that a channel pauses. The caller holds the world's mu.
func (p *proc) onOpened(e *BreakerOpened) {
	p.w.stats.openings++
	p.w.notef("%s: the breaker of %s has opened at %s: %v", p.name, e.Channel, e.Stage, e.Err)

	g := p.gateOf(e.Channel)
	g.open, g.opened = true, time.Now()
	clear(g.row)
}

// onClosed notes that a channel goes on. The caller holds the world's mu.
func (p *proc) onClosed(e *BreakerClosed) {
	p.w.notef("%s: the breaker of %s has closed after %s", p.name, e.Channel, e.Open)

	g := p.gateOf(e.Channel)
	g.open = false
	clear(g.row)

	if g.instant.Equal(time.Now()) {
		for _, a := range g.held {
			p.w.failed[a]++
		}
	}
}
