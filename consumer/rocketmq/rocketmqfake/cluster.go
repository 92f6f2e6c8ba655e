package rocketmqfake

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"time"
)

// Options are the settings of a Cluster. The zero value is one broker reached through memory.
type Options struct {
	// Brokers is how many brokers there are, named b0, b1, ...; 0 means 1.
	Brokers int
	// TCP makes the servers listen on the loopback interface. Without it only [Cluster.Dial] reaches them, through memory,
	// which is what testing/synctest needs.
	TCP bool
	// Seed is of everything that Faults leaves to chance.
	Seed uint64
	// DelayLevels are the delays of levels 1, 2, ...; nil means RocketMQ's own eighteen.
	DelayLevels []time.Duration
	// NoFilters is enablePropertyFilter=false: SQL92 subscriptions are refused.
	NoFilters bool
	// NoAutoCreate refuses messages of topics that do not exist, and groups that do not exist.
	NoAutoCreate bool
}

// Cluster is a name server with its brokers. It is safe for concurrent use. Whoever made it closes it.
type Cluster struct {
	// NameServer is the name server's address.
	NameServer string
	// Brokers are the brokers, b0 first.
	Brokers []*Broker

	options Options
	names   *server
	running sync.WaitGroup

	mu     sync.Mutex // guards everything of the cluster, its servers and its connections
	closed bool
	faults Faults
	random *rand.Rand
	timers map[*time.Timer]struct{}
}

// New starts a cluster. It fails only with Options.TCP, when there is no port.
func New(o Options) (*Cluster, error) {
	o.Brokers = cmp.Or(o.Brokers, 1)
	if o.DelayLevels == nil {
		o.DelayLevels = defaultLevels()
	}

	c := &Cluster{options: o, random: rand.New(rand.NewPCG(o.Seed, 0)), timers: map[*time.Timer]struct{}{}}
	c.names = &server{cluster: c, addr: "127.0.0.1:9876", links: map[*link]struct{}{}}
	c.names.handle = c.answerRoutes

	for i := range o.Brokers {
		c.Brokers = append(c.Brokers, newBroker(c, i))
	}

	for _, s := range c.servers() {
		if err := s.start(); err != nil {
			c.Close()

			return nil, err
		}
	}

	c.NameServer = c.names.addr
	for _, b := range c.Brokers {
		b.Addr = b.server.addr
		b.setHost()
	}

	return c, nil
}

// Close ends all connections and waits for the goroutines of the cluster.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true

	for timer := range c.timers {
		timer.Stop()
	}
	c.mu.Unlock()

	for _, s := range c.servers() {
		s.stop()
	}

	c.running.Wait()
}

// Dial connects to a server of the cluster; it is what Options.Dial of a remoting client wants.
func (c *Cluster) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if c.options.TCP {
		return new(net.Dialer).DialContext(ctx, "tcp", addr) //nolint:wrapcheck // the caller names the address
	}

	for _, s := range c.servers() {
		if s.addr == addr {
			ours, theirs := net.Pipe()
			if s.serve(ours) {
				return theirs, nil
			}

			break
		}
	}

	return nil, fmt.Errorf("connect to %s: connection refused", addr)
}

// CreateTopic makes a topic with so many queues, for reading and writing, at every broker.
func (c *Cluster) CreateTopic(topic string, queues int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	for _, b := range c.Brokers {
		b.topics[topic] = b.topic(topic).configure(queues, queues, permRead|permWrite)
	}
}

// StopNameServer makes the name server unreachable, StartNameServer brings it back. The latter fails when somebody else took
// its port.
func (c *Cluster) StopNameServer() { c.names.stop() }

// StartNameServer is the opposite of StopNameServer.
func (c *Cluster) StartNameServer() error { return c.names.start() }

func (c *Cluster) servers() []*server {
	all := []*server{c.names}
	for _, b := range c.Brokers {
		all = append(all, b.server)
	}

	return all
}

// after has f called with c.mu held, unless the cluster is closed by then. c.mu is held.
func (c *Cluster) after(d time.Duration, f func()) *time.Timer {
	var timer *time.Timer

	timer = time.AfterFunc(d, func() {
		c.mu.Lock()
		defer c.mu.Unlock()

		delete(c.timers, timer)

		if !c.closed {
			f()
		}
	})
	c.timers[timer] = struct{}{}

	return timer
}

// unschedule takes back an after that is not due yet. c.mu is held.
func (c *Cluster) unschedule(timer *time.Timer) {
	timer.Stop()
	delete(c.timers, timer)
}

func defaultLevels() []time.Duration {
	const s, m, h = time.Second, time.Minute, time.Hour

	return []time.Duration{
		s, 5 * s, 10 * s, 30 * s, m, 2 * m, 3 * m, 4 * m, 5 * m, 6 * m, 7 * m, 8 * m, 9 * m, 10 * m, 20 * m, 30 * m, h, 2 * h,
	}
}

func addressOf(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(10911+10*i)) }
