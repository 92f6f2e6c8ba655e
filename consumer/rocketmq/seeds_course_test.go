package rocketmq_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing/synctest"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqfake"
	"github.com/millrace/millrace/pipeline"
)

func (c *course) play() {
	c.fake.CreateTopic(topic, c.queues)
	c.publishSome()
	c.begin("a")

	for range 8 + c.rnd.IntN(12) {
		c.step()
		c.pass()
		c.look()
	}

	c.heal()
	c.settle()
	c.stopAll()

	if behind := c.behind(c.lost()); len(behind) > 0 {
		c.locked(func() { c.brokenf("I5: after a clean stop there is still %v", behind) })
	}

	<-time.After(time.Minute) // until no late answer can make a copy any more

	kept := len(c.behind(nil)) == 0
	c.balance(c.T, c.sent, c.copies(consumer.RetryTopic(group)), c.copies(consumer.DeadLetterTopic(group)), len(c.fake.Brokers))

	c.locked(func() { c.over = len(c.broken) == 0 && kept })
	c.begin("b")
	<-time.After(time.Minute)
	c.look()
	c.stopAll()
	c.ending.Wait()
}

// locked calls f while it holds the ledger.
func (c *course) locked(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()

	f()
}

// upTo draws a while from a millisecond up to d.
func (c *course) upTo(d time.Duration) time.Duration {
	return time.Millisecond * time.Duration(1+c.rnd.Int64N(int64(d/time.Millisecond)))
}

// pass lets a while pass, or nothing at all.
func (c *course) pass() {
	if longest := []time.Duration{0, 20 * time.Millisecond, 2 * time.Second, 20 * time.Second}[c.rnd.IntN(4)]; longest > 0 {
		<-time.After(c.upTo(longest))
	}
}

// step makes one thing happen.
func (c *course) step() {
	name := string("abc"[c.rnd.IntN(3)])
	some := c.fake.Brokers[c.rnd.IntN(len(c.fake.Brokers))]

	switch c.rnd.IntN(14) {
	case 0, 1:
		c.publishSome()
	case 2, 3, 4:
		c.drawFaults()
	case 5, 6:
		c.begin(name)
	case 7:
		c.stop(name, c.upTo(10*time.Second))
	case 8:
		c.kill(name)
	case 9, 10:
		c.tellf("strangers come and go")
		c.fake.Storm(group, 1+c.rnd.IntN(6), c.upTo(3*time.Second))
	case 11:
		c.outage(some)
	case 12:
		c.tellf("%s is for reading only", some.Name)
		some.ReadOnly(true)
		c.pass()
		some.ReadOnly(false)
	case 13:
		c.tellf("the name server is away")
		c.fake.StopNameServer()
		c.pass()

		if err := c.fake.StartNameServer(); err != nil {
			c.Error(err)
		}
	}
}

func (c *course) tellf(format string, args ...any) { c.locked(func() { c.notef(format, args...) }) }

// outage has a broker stop for a while, in order or not.
func (c *course) outage(b *rocketmqfake.Broker) {
	how := c.rnd.IntN(3)
	if how == 0 && !c.crashes {
		how = 1
	}

	c.tellf("%s ends, %s", b.Name, []string{"at once", "in order", "and nobody is told"}[how])
	[]func(){b.Crash, b.Stop, b.Vanish}[how]()
	c.pass()

	if err := b.Start(); err != nil {
		c.Error(err)
	}
}

// drawFaults draws what brokers and name server do wrong from now on.
func (c *course) drawFaults() {
	rate := func(most float64) float64 {
		if c.rnd.IntN(2) == 0 {
			return 0
		}

		return c.rnd.Float64() * most
	}

	c.faults = rocketmqfake.Faults{
		SendBack: rate(1), Commit: rate(1), Send: rate(0.7), MemberList: rate(1), Drop: rate(0.1), Broken: rate(0.05), GoAway: rate(0.2),
	}

	if c.lies {
		c.faults.Offset = rate(1)
	}

	if c.rnd.IntN(3) == 0 {
		c.faults.Late = c.upTo(4 * time.Second)
	}

	if c.rnd.IntN(4) == 0 {
		c.faults.LateUpkeep = c.upTo(3 * time.Second)
	}

	c.tellf("from now on %+v", c.faults)
	c.fake.Fault(c.faults)
}

// publishSome publishes messages, without faults: a publisher that tried again would publish some twice.
func (c *course) publishSome() {
	c.fake.Fault(rocketmqfake.Faults{})
	<-time.After(time.Second) // for answers that are late

	n := 1 + c.rnd.IntN(40)
	c.tellf("%d messages are published, from m%d on", n, c.sent)

	for range n {
		id := fmt.Sprintf("m%d", c.sent)
		c.sent++

		b := c.fake.Brokers[c.rnd.IntN(len(c.fake.Brokers))]
		_, err := c.bus.client.Call(c.Context(), b.Addr, &remoting.Command{Code: remoting.SendMessageV2, Ext: map[string]string{
			"a": "publishers", "b": topic, "c": "TBW102", "d": "4", "e": strconv.Itoa(c.rnd.IntN(c.queues)), "f": "0", "n": b.Name,
			"g": strconv.FormatInt(time.Now().UnixMilli(), 10), "h": "0", "i": "UNIQ_KEY\x01" + id + "\x02", "j": "0", "k": "false", "m": "false",
		}, Body: []byte(id)})
		if err != nil {
			c.Fatal(err)
		}
	}

	c.fake.Fault(c.faults)
}

func (c *course) begin(name string) {
	if p := c.procs[name]; p != nil {
		if p.job.Report() == nil {
			return
		}

		c.ending.Go(func() { p.end(0) })
	}

	c.tellf("%s starts", name)
	c.procs[name] = c.start(name)
}

// stop drains a process and checks how long that takes.
func (c *course) stop(name string, budget time.Duration) *actors.Report {
	p := c.procs[name]
	if p == nil {
		return nil
	}

	c.tellf("%s is to stop within %s", name, budget)
	delete(c.procs, name)

	stopped := make(chan *actors.Report, 1)
	c.ending.Go(func() { stopped <- p.end(budget) })

	const patience = 10 * time.Minute

	select {
	case r := <-stopped:
		return r
	case <-time.After(patience):
		c.locked(func() { c.brokenf("drain: %s was to stop within %s, and has not for %s", name, budget, patience) })

		return nil
	}
}

func (c *course) kill(name string) {
	if p := c.procs[name]; p != nil {
		delete(c.procs, name)
		p.kill()
		c.ending.Go(func() { p.end(-1) })
	}
}

// look checks what the jobs say of themselves in a moment of rest.
func (c *course) look() {
	synctest.Wait()

	for _, p := range c.procs {
		s, err := p.job.Snapshot(c.Context())
		if err != nil {
			continue // it has stopped
		}

		for _, k := range s.Contradictions(p.job.Plan(), p.limits) {
			c.locked(func() { c.brokenf("%s: %s: %s: %s", k.Rule, p.name, k.Queue, k.Text) })
		}
	}
}

func (c *course) heal() {
	c.tellf("peace")

	c.faults = rocketmqfake.Faults{}
	c.fake.Fault(c.faults)

	if len(c.procs) == 0 {
		c.begin("a")
	}
}

// revive starts again what has stopped because it could not join its group, as somebody would who looks after it.
func (c *course) revive() {
	for name, p := range maps.Clone(c.procs) {
		r := p.job.Report()
		if r == nil {
			continue
		}

		c.locked(func() {
			if p.joined {
				c.brokenf("I5: %s has stopped by itself: %v", name, r.Err)
			}
		})
		c.begin(name)
	}
}

// settle is I5: it waits until everything is finished and committed, also what is to be delivered again.
func (c *course) settle() {
	const (
		pause = 5 * time.Second // longer than the longest delay
		bound = 30 * time.Minute
	)

	for waited, quiet := time.Duration(0), 0; quiet < 2; waited += pause {
		<-time.After(pause)
		c.revive()
		c.look()

		behind := c.behind(c.standing())

		switch {
		case len(behind) == 0:
			quiet++
		case waited >= bound:
			c.locked(func() { c.brokenf("I5: after %s of peace there is still %v", bound, behind) })
			c.explain()

			return
		default:
			quiet = 0
		}
	}
}

// standing is where the owners of the queues say that they are, if nothing keeps them.
func (c *course) standing() map[pipeline.Queue]pipeline.Offset {
	standing := map[pipeline.Queue]pipeline.Offset{}

	for _, p := range c.procs {
		s, err := p.job.Snapshot(c.Context())
		if err != nil {
			continue
		}

		for i := range s.Queues {
			if q := &s.Queues[i]; q.Err == "" {
				standing[q.Queue] = q.Committed
			}
		}
	}

	return standing
}

// behind are the queues whose end was not committed. What brokers have forgotten or a second owner has moved back may be at their
// end by the word of somebody else.
func (c *course) behind(standing map[pipeline.Queue]pipeline.Offset) []string {
	var behind []string

	for _, b := range c.fake.Brokers {
		for _, name := range []string{topic, consumer.RetryTopic(group)} {
			for id := range c.queues {
				end := c.askAt(b.Addr, remoting.GetMaxOffset, name, id)
				stored := c.askAt(b.Addr, remoting.QueryConsumerOffset, name, id)

				c.mu.Lock()
				most := strconv.FormatInt(int64(standing[pipeline.Queue{Topic: name, Broker: b.Name, ID: id}]), 10)
				c.mu.Unlock()

				if end != stored && end != most && end != "0" {
					behind = append(behind, fmt.Sprintf("%s@%s/%d at %s of %s", name, b.Name, id, stored, end))
				}
			}
		}
	}

	return behind
}

// lost are the queues whose committed offsets may be behind after all: the broker has forgotten some when nobody was there to commit
// them once more, or a second owner has moved them back.
func (c *course) lost() map[pipeline.Queue]pipeline.Offset {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.firm() {
		return nil
	}

	return maps.Clone(c.highest)
}

// firm says that what was confirmed stays so: brokers forget nothing, and no queue has two owners.
func (c *course) firm() bool { return !c.lies && !c.crashes && c.client.Orderly }

// explain prints what the jobs say of themselves when a run does not come to its end.
func (c *course) explain() {
	for _, p := range c.procs {
		if s, err := p.job.Snapshot(c.Context()); err == nil {
			for i := range s.Queues {
				c.tellf("%s: %+v, blocked by %+v", p.name, s.Queues[i], s.Queues[i].Blocking)
			}
		}
	}
}

// stopAll stops every process; what is finished needs no time.
func (c *course) stopAll() {
	for _, name := range slices.Sorted(maps.Keys(c.procs)) {
		if r := c.stop(name, 10*time.Second); c.firm() && r != nil && r.UnfinishedCount > 0 {
			c.locked(func() { c.brokenf("drain: %s had nothing to do and has left %d messages", name, r.UnfinishedCount) })
		}
	}
}

// copies counts the records of a topic by message.
func (c *course) copies(topic string) map[string]int {
	n := map[string]int{}
	for _, r := range c.fake.Records(topic) {
		n[r.ID()]++
	}

	return n
}
