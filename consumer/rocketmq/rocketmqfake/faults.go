package rocketmqfake

import (
	"fmt"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// Faults are what goes wrong. Numbers are chances between 0 (never) and 1 (each time); which calls are hit follows from
// Options.Seed and the order of the calls.
type Faults struct {
	// SendBack and Commit are refused with "system error", Send with "system busy"; nothing is stored then.
	SendBack, Commit, Send float64
	// Offset makes a query of a stored offset answer with -1, 0, no offset at all, or an error.
	Offset float64
	// MemberList makes the list of a group's members fail, come back empty, or without a body.
	MemberList float64
	// Drop ends the connection in place of the answer; half the time the request was carried out.
	Drop float64
	// Broken sends bytes in place of the answer that are no frame.
	Broken float64
	// GoAway answers that the server is shutting down; the request was not carried out.
	GoAway float64
	// Late delays each answer by a random time up to this long, which also changes their order.
	Late time.Duration
	// LateUpkeep is how much later heartbeats and locks are carried out. Brokers have queues of their own for them, where a
	// later request, such as the farewell of the same member, overtakes them; even the end of the connection does.
	LateUpkeep time.Duration
}

// Fault replaces the faults; the zero Faults heal everything.
func (c *Cluster) Fault(f Faults) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.faults = f
}

// hit throws the dice.
func (c *Cluster) hit(chance float64) bool { return chance > 0 && c.random.Float64() < chance }

// faultBefore reports whether a request is to be carried out.
func (c *Cluster) faultBefore(l *link, r *remoting.Command) bool {
	f := &c.faults

	switch {
	case c.hit(f.GoAway):
		l.answer(r, fail(remoting.GoAway, "the server is shutting down"))
	case r.Code == remoting.SendMessageBack && c.hit(f.SendBack):
		l.answer(r, fail(remoting.SystemError, "a fault: not sent back"))
	case r.Code == remoting.UpdateConsumerOffset && c.hit(f.Commit):
		l.answer(r, fail(remoting.SystemError, "a fault: not committed"))
	case isSend(r.Code) && c.hit(f.Send):
		l.answer(r, fail(remoting.SystemBusy, "a fault: not stored"))
	case r.Code == remoting.QueryConsumerOffset && c.hit(f.Offset):
		l.answer(r, []*remoting.Command{
			offsetAnswer(-1), offsetAnswer(0),
			ok(nil, nil), fail(remoting.SystemError, "a fault: no offset"),
		}[c.random.IntN(4)])
	case r.Code == remoting.GetConsumerList && c.hit(f.MemberList):
		l.answer(r, []*remoting.Command{
			fail(remoting.SystemError, "a fault: no list"), ok(nil, []byte(`{"consumerIdList":[]}`)), ok(nil, nil),
		}[c.random.IntN(3)])
	case c.hit(f.Drop / 2):
		l.end()
	default:
		return true
	}

	return false
}

// faultAfter sends an answer, or does something worse.
func (c *Cluster) faultAfter(l *link, answer *remoting.Command) {
	f := &c.faults

	switch {
	case c.hit(f.Drop / 2):
		l.end()
	case c.hit(f.Broken):
		l.sendBytes([]byte{0, 0, 0, 9, 7, 0, 0, 1, 0xff, 0xff, 0xff, 0xff, 0xff})
	case f.Late > 0:
		c.after(time.Duration(c.random.Int64N(int64(f.Late)+1)), func() { l.send(answer) })
	default:
		l.send(answer)
	}
}

// Storm makes strangers join a group and leave it again, one change every pause, and returns when all have left. The members
// are notified each time, and see queues go to somebody who does not read them. There are at most three at a time.
func (c *Cluster) Storm(group string, changes int, pause time.Duration) {
	for i := range changes {
		c.mu.Lock()
		ghost := fmt.Sprintf("stranger-%d", c.random.IntN(3))

		for _, b := range c.Brokers {
			g := b.group(group)
			switch {
			case i == changes-1:
				clear(g.strangers)
			case g.strangers[ghost]:
				delete(g.strangers, ghost)
			default:
				g.strangers[ghost] = true
			}

			b.notify(group)
		}
		c.mu.Unlock()

		<-time.After(pause)
	}
}
