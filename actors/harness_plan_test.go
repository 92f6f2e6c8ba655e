package actors

import (
	"fmt"
	"maps"
	"slices"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/pipeline"
)

// names are the processes that there can be at a time.
func names() []string { return []string{"a", "b", "c"} }

// plan is one run's course: trouble, then peace, then a clean stop and a start that finds nothing to do.
type plan struct {
	*world
	*consumertest.Unrest

	// procs are the living processes by name.
	procs map[string]*proc
	// trouble is how much may happen: 0 nothing at all, 1 without crashes and lies, 2 everything.
	trouble int
	// inFlight is what the last look saw in flight.
	inFlight int
}

func (w *world) play() {
	p := &plan{world: w, Unrest: w.unrest(), procs: make(map[string]*proc), trouble: w.rnd.IntN(3)}
	p.publish(1 + w.rnd.IntN(60))

	if !w.spec.start.IsFirst() {
		<-time.After(1 + p.UpTo(15*time.Second))
		p.publish(1 + w.rnd.IntN(20))
		<-time.After(1)
	}

	p.begin(names()[0])

	if w.lasts > 0 {
		p.trouble = 2
	}

	if p.trouble > 0 {
		w.faulty.Store(true)

		for range 3 + w.rnd.IntN(15) {
			p.step()
			p.Pass()
			p.look()
		}

		for time.Since(w.began) < w.lasts {
			p.step()
			<-time.After(p.UpTo(3 * time.Minute))
			p.look()
		}
	}

	p.heal()
	p.settle()
	p.stopAll()
	p.restart()
	close(w.release)
	// What hung comes back now, and protoactor keeps count of undeliverable messages for a second.
	<-time.After(10 * time.Second)
	w.b.Close()
	<-time.After(2 * time.Second)
}

// unrest draws what happens to the queues.
func (w *world) unrest() *consumertest.Unrest {
	topics := []string{"in", consumer.RetryTopic(harnessGroup)}
	if w.spec.broadcast {
		topics = topics[:1]
	}

	return &consumertest.Unrest{
		Rnd: w.rnd, Broker: w.b, Group: harnessGroup, Topics: topics, Tell: func(q pipeline.Queue, atOnce bool) {
			w.mu.Lock()
			defer w.mu.Unlock()

			w.notef("the broker takes %s, at once %v", q, atOnce)
		},
	}
}

// publish publishes messages with few keys, so that orders matter.
func (p *plan) publish(n int) {
	messages := make([]*pipeline.Message, n)

	for i := range messages {
		m := &pipeline.Message{ID: fmt.Sprintf("m%d", p.stats.published), Body: make([]byte, p.rnd.IntN(60))}
		p.stats.published++

		if p.rnd.IntN(8) > 0 {
			m.Key = fmt.Sprintf("k%d", p.rnd.IntN(6))
		}

		leaves := make(map[leaf]bool)
		p.expect(0, m.ID, leaves)

		p.mu.Lock()
		p.expected[m.ID] = leaves
		p.born[m.ID] = time.Since(p.began)
		p.mu.Unlock()

		messages[i] = m
	}

	if err := p.b.Publish(p.t.Context(), "in", messages); err != nil {
		p.t.Fatal(err)
	}
}

// step makes one thing happen.
func (p *plan) step() {
	switch p.rnd.IntN(14) {
	case 0, 1:
		p.publish(1 + p.rnd.IntN(40))
	case 2, 3:
		p.b.SetFaults(p.drawFaults())
	case 4, 5:
		p.Reassign(p.trouble > 1 && p.rnd.IntN(2) == 0)
	case 6:
		p.begin(names()[p.rnd.IntN(3)])
	case 7:
		p.stop(names()[p.rnd.IntN(3)], p.UpTo(10*time.Second)-time.Second)
	case 8:
		p.storm()
	case 9:
		if p.trouble > 1 {
			p.crash(names()[p.rnd.IntN(3)])
		}
	case 10, 11:
		p.ask()
	case 12, 13:
		p.fell()
	}
}

// drawFaults draws what the broker does wrong from now on.
func (p *plan) drawFaults() consumertest.Faults {
	f := consumertest.DrawFaults(p.rnd)
	f.PruneOnCommit = f.PruneOnCommit && !p.spec.broadcast // what one member has done others have yet to read

	// A broker that says that nothing is stored makes a group begin where its job says, which is not always the first offset.
	if p.trouble > 1 && p.rnd.IntN(3) == 0 && p.spec.start.IsFirst() {
		f.Wrong = p.rnd.Float64()
		f.Answers = []consumertest.Answer{consumertest.AnswerMinusOne}

		if p.rnd.IntN(2) == 0 {
			f.Answers = nil
		}
	}

	return f
}

// storm lets members come and go.
func (p *plan) storm() {
	for range 1 + p.rnd.IntN(4) {
		name := names()[1+p.rnd.IntN(2)]
		if p.procs[name] == nil {
			p.begin(name)
		} else {
			p.stop(name, p.UpTo(3*time.Second))
		}

		p.Pass()
	}
}

func (p *plan) begin(name string) {
	if old := p.procs[name]; old != nil {
		if old.r.Report() == nil {
			return
		}

		p.gone(name)
	}

	p.procs[name] = p.start(name)
}

// beginAll starts all members of a broadcast that there have been, or a process when there is none.
func (p *plan) beginAll(name string) {
	switch {
	case p.spec.broadcast:
		for _, name := range slices.Sorted(maps.Keys(p.joined)) {
			p.begin(name)
		}
	case len(p.procs) == 0:
		p.begin(name)
	}
}

// stop drains a process and checks how long that takes.
func (p *plan) stop(name string, budget time.Duration) {
	proc := p.procs[name]
	if proc == nil {
		return
	}

	p.mu.Lock()
	p.notef("%s is to stop within %s", name, budget)
	p.mu.Unlock()

	stopped := make(chan *Report, 1)
	go func() { stopped <- proc.r.Drain(budget) }()

	const patience = 5 * time.Minute

	select {
	case <-stopped:
	case <-time.After(patience):
		p.mu.Lock()
		p.breachf("drain", "%s has not stopped after %s", name, patience)
		p.mu.Unlock()
		p.crash(name)

		return
	}

	p.gone(name)
}

// gone forgets a process that has ended; the broker forgets the member too, should its farewell have failed.
func (p *plan) gone(name string) {
	delete(p.procs, name)
	p.b.Crash(harnessGroup, name)
}

// crash kills a process: no call of it reaches the broker any more, and its lanes are cancelled.
func (p *plan) crash(name string) {
	proc := p.procs[name]
	if proc == nil {
		return
	}

	p.mu.Lock()
	p.notef("%s crashes", name)
	proc.crashed = true
	p.mu.Unlock()

	// Half of them are seen to die by the broker first, the others try to say farewell.
	if p.rnd.IntN(2) == 0 {
		p.b.Crash(harnessGroup, name)
	} else {
		p.mu.Lock()
		proc.crashed = false
		p.mu.Unlock()
	}

	proc.r.system.Root.Stop(proc.r.pid)
	<-proc.r.Stopped()
	p.gone(name)
}

// look takes a snapshot of every process in a moment of rest and checks it.
func (p *plan) look() {
	synctest.Wait()

	p.inFlight = 0

	for _, name := range names() {
		proc := p.procs[name]
		if proc == nil || proc.r.Report() != nil {
			continue
		}

		s, err := proc.r.Snapshot(p.t.Context())
		if err != nil {
			continue
		}

		p.mu.Lock()
		p.stats.snapshots++

		for i := range s.Queues {
			p.inFlight += s.Queues[i].InFlight
		}

		proc.checkSnapshot(s)
		p.mu.Unlock()
	}
}
