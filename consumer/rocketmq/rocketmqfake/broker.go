package rocketmqfake

import (
	"maps"
	"net/netip"
	"strconv"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// rewind is how often real brokers write offsets down, and thus how much of them a crash loses.
const rewind = 5 * time.Second

// Broker is one broker of a cluster, a master.
type Broker struct {
	// Name is the broker's name, Addr its address.
	Name, Addr string

	cluster *Cluster
	server  *server
	host    netip.AddrPort // the address as messages carry it

	// Guarded by Cluster.mu.
	lost     bool // stopped, and the name server has not noticed
	perm     int
	topics   map[string]*topic
	groups   map[string]*group
	log      map[int64]*message // by physical offset
	end      int64              // of the log
	offsets  map[groupQueue]int64
	resets   map[groupQueue]int64 // one-shot marks of an administrator
	snapshot map[groupQueue]int64 // the offsets that a crash leaves
	flushed  time.Time
	locks    map[groupQueue]lock
	delayed  map[int]int64 // messages so far by their level of delay
}

// groupQueue is a queue of this broker as a group sees it.
type groupQueue struct {
	group, topic string
	queue        int64
}

func newBroker(c *Cluster, i int) *Broker {
	b := &Broker{
		Name: "b" + strconv.Itoa(i), cluster: c, perm: permRead | permWrite,
		topics: map[string]*topic{}, groups: map[string]*group{}, log: map[int64]*message{},
		offsets: map[groupQueue]int64{}, resets: map[groupQueue]int64{}, snapshot: map[groupQueue]int64{},
		locks: map[groupQueue]lock{}, delayed: map[int]int64{},
	}
	b.server = &server{cluster: c, addr: addressOf(i), handle: b.handle, gone: b.gone, links: map[*link]struct{}{}}
	b.host = netip.AddrPortFrom(loopback(), 0)
	b.ensure("TBW102", 8)

	return b
}

// Stop ends the broker in order; the name server knows. Messages and offsets stay.
func (b *Broker) Stop() {
	b.server.stop()
	b.forget()
}

// Crash ends the broker at once. Offsets that were committed within the last 5 s may be forgotten, messages are not.
func (b *Broker) Crash() {
	b.server.stop()
	b.forget()

	b.cluster.mu.Lock()
	defer b.cluster.mu.Unlock()

	b.offsets = maps.Clone(b.snapshot)
}

// Vanish makes the broker unreachable while the name server still hands out its address.
func (b *Broker) Vanish() {
	b.cluster.mu.Lock()
	b.lost = true
	b.cluster.mu.Unlock()

	b.Stop()
}

// Start is the opposite of Stop, Crash and Vanish. It fails when somebody else took the port.
func (b *Broker) Start() error {
	b.cluster.mu.Lock()
	b.lost = false
	b.cluster.mu.Unlock()

	return b.server.start()
}

// ReadOnly makes routes say that the broker is for reading only, and the broker refuse what is sent back, or heals that. Like a
// real one it stores what is sent in spite of its route.
func (b *Broker) ReadOnly(yes bool) {
	b.cluster.mu.Lock()
	defer b.cluster.mu.Unlock()

	b.perm = permRead
	if !yes {
		b.perm |= permWrite
	}
}

// Trim removes the messages of a queue below an offset, as if they had expired.
func (b *Broker) Trim(topic string, id int, below int64) {
	b.cluster.mu.Lock()
	defer b.cluster.mu.Unlock()

	q := b.at(topic, int64(id))
	for q != nil && len(q.records) > 0 && q.min < below {
		delete(b.log, q.records[0].physical)
		q.records = q.records[1:]
		q.min++
	}
}

// forget drops what a broker has only in memory.
func (b *Broker) forget() {
	b.cluster.mu.Lock()
	defer b.cluster.mu.Unlock()

	clear(b.locks)

	for _, t := range b.topics {
		for _, q := range t.queues {
			q.held = nil
		}
	}
}

// gone removes a connection that has ended from the groups.
func (b *Broker) gone(l *link) {
	for name, g := range b.groups {
		if _, member := g.members[l]; member {
			g.remove(l)
			b.notify(name)
		}
	}
}

// handle answers a request.
func (b *Broker) handle(l *link, r *remoting.Command) *remoting.Command {
	switch r.Code {
	case remoting.SendMessage, remoting.SendMessageV2, remoting.SendMessageBatch:
		return b.send(r)
	case remoting.SendMessageBack:
		return b.sendBack(r)
	case remoting.PullMessage:
		return b.pull(l, r)
	case remoting.Heartbeat:
		return b.heartbeat(l, r)
	case remoting.UnregisterClient:
		return b.unregister(r)
	case remoting.GetConsumerList:
		return b.members(r)
	case remoting.LockQueues, remoting.UnlockQueues:
		return b.lockQueues(r)
	case remoting.CheckClientConfig:
		return b.check(r)
	case remoting.UpdateTopic, remoting.DeleteTopic, remoting.UpdateGroup:
		return b.administer(r)
	case remoting.GetRunningInfo, remoting.ConsumeDirectly:
		return b.relay(l, r)
	case viewMessage:
		return b.view(r)
	default:
		return b.answerOffsets(r)
	}
}

const viewMessage = 33

// view answers with one record by its place in the log.
func (b *Broker) view(r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)
	at := f.number("offset")

	if bad := f.failed(); bad != nil {
		return bad
	}

	m := b.log[at]
	if m == nil {
		return fail(remoting.SystemError, "can not find message by the offset, %d", at)
	}

	return ok(nil, m.appendTo(nil))
}

// administer makes and deletes topics and groups.
func (b *Broker) administer(r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)

	switch r.Code {
	case remoting.UpdateTopic:
		name, read, write := f.text("topic"), f.number("readQueueNums"), f.number("writeQueueNums")
		perm := f.number("perm")

		if bad := f.failed(); bad != nil {
			return bad
		}

		b.topics[name] = b.topic(name).configure(int(read), int(write), int(perm))
	case remoting.DeleteTopic:
		name := f.text("topic")
		if bad := f.failed(); bad != nil {
			return bad
		}

		delete(b.topics, name)
	default:
		config := groupConfig{ConsumeEnable: true}
		if bad := decodeBody(r, &config); bad != nil {
			return bad
		}

		b.group(config.GroupName).disabled = !config.ConsumeEnable
	}

	return ok(nil, nil)
}

// setHost notes the address that messages carry, whose port is known only when the server listens.
func (b *Broker) setHost() {
	if addr, err := netip.ParseAddrPort(b.server.addr); err == nil {
		b.host = addr
	}
}
