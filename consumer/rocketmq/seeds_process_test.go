package rocketmq_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"sync"
	"time"

	"github.com/millrace/millrace/actors"
	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/consumertest"
	"github.com/millrace/millrace/consumer/rocketmq"
	"github.com/millrace/millrace/pipeline"
)

// fate is what the stages of a job make of a message, by its id: they always reject it, or fail at its first deliveries, or are
// past their deadline at the first.
type fate struct {
	dead, slow bool
	failures   int
}

const seedAttempts = 6

func fateOf(id string) fate {
	h := fnv.New64a()
	h.Write([]byte(id))

	const mix = 0x9e3779b97f4a7c15

	switch x := h.Sum64() * mix >> 40; x % 10 {
	case 0:
		return fate{dead: true}
	case 1, 2:
		return fate{failures: 1 + int(x>>8%(seedAttempts-1))}
	case 3:
		return fate{slow: true}
	default:
		return fate{}
	}
}

// process is a process of the job: a client of its own with a wire that can be cut.
type process struct {
	*ledger
	*wire

	name   string
	broker *rocketmq.Broker
	job    *actors.Running
	limits consumer.Limits
	// subscribed is closed when the job's events are seen.
	subscribed chan struct{}

	// What follows is guarded by the ledger. crashed: nothing that the process does has any effect. joined: it is a member, and
	// does not stop by itself any more. answers are the broker's last
	// answers, asked what was confirmed of each queue when it was asked for.
	crashed, joined bool
	answers         map[pipeline.Queue]consumer.Checkpoint
	asked           map[pipeline.Queue]pipeline.Offset
}

// wire makes connections until it is cut, which ends them all.
type wire struct {
	dial func(ctx context.Context, addr string) (net.Conn, error)

	mu    sync.Mutex
	conns []net.Conn
	cut   bool
}

var errCut = errors.New("the wire is cut")

func (w *wire) connect(ctx context.Context, addr string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.cut {
		return nil, errCut
	}

	c, err := w.dial(ctx, addr)
	if err == nil {
		w.conns = append(w.conns, c)
	}

	return c, err
}

func (w *wire) sever() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.cut = true

	for _, c := range w.conns {
		_ = c.Close()
	}
}

// start starts a process of the job.
func (c *course) start(name string) *process {
	p := &process{
		ledger: c.ledger, wire: &wire{dial: c.fake.Dial}, name: name, subscribed: make(chan struct{}), limits: c.options.Limits,
		answers: map[pipeline.Queue]consumer.Checkpoint{}, asked: map[pipeline.Queue]pipeline.Offset{},
	}

	o := c.client
	o.Dial = p.connect

	var err error
	if p.broker, err = rocketmq.Open(o); err != nil {
		c.Fatal(err)
	}

	options := c.options
	options.Instance = name

	if p.job, err = actors.Start(c.jobOf(p), c.above.Broker(p.awaited(p.watch(p).Broker(c.below.Broker(p.broker)))), options); err != nil {
		c.Fatal(err)
	}

	p.job.OnEvent(func(e actors.Event) { p.on(p, e) })
	close(p.subscribed)

	return p
}

// awaited is a broker that nobody joins before the job's events are seen.
func (p *process) awaited(b consumer.Broker) consumer.Broker {
	around := consumertest.Around{Join: func(call func() (consumer.Member, error)) (consumer.Member, error) {
		<-p.subscribed

		m, err := call()

		p.ledger.mu.Lock()
		defer p.ledger.mu.Unlock()

		p.joined = err == nil

		return m, err
	}}

	return around.Broker(b)
}

// end waits for the job's end and closes its client.
func (p *process) end(budget time.Duration) *actors.Report {
	r := p.job.Drain(budget)
	_ = p.broker.Close()

	return r
}

// kill cuts the process off, as SIGKILL does.
func (p *process) kill() {
	p.ledger.mu.Lock()
	p.crashed = true
	p.notef("%s is killed", p.name)
	p.ledger.mu.Unlock()

	p.sever()
}

// jobOf is the job as a process runs it: its stage does what the fate of each message says, its sink writes to the ledger.
func (c *course) jobOf(p *process) pipeline.Job {
	stage := pipeline.Func("moody", func(ctx context.Context, m *pipeline.Message, emit pipeline.Emit) error {
		if err := p.enter(m); err != nil {
			return err
		}

		defer p.leave(m)

		f := fateOf(m.ID)

		switch {
		case f.dead:
			return pipeline.Reject(errors.New("it is bad"))
		case m.Origin.Delivery <= f.failures:
			return fmt.Errorf("not before delivery %d", f.failures+1)
		case f.slow && m.Origin.Delivery == 1:
			<-ctx.Done()

			return ctx.Err()
		}

		return emit(m)
	})

	sink := pipeline.SinkFunc(func(_ context.Context, batch []*pipeline.Message) error {
		p.ledger.mu.Lock()
		defer p.ledger.mu.Unlock()

		if p.crashed {
			return context.Canceled
		}

		for _, m := range batch {
			p.write(p, m)
		}

		return nil
	})

	return pipeline.Job{
		Name: group, Source: pipeline.Source{Topics: []string{topic}},
		Retry: pipeline.RetryPolicy{Attempts: seedAttempts, Delays: []time.Duration{time.Second}},
		Channels: []pipeline.Channel{{
			Name: "c", Lanes: c.lanes, Timeout: 3 * time.Second, Batch: c.batch, Stages: []pipeline.Stage{stage}, Sink: sink,
			Breaker: pipeline.Breaker{Patience: time.Minute}, // so that a run comes to its end
		}},
	}
}

func (p *process) enter(m *pipeline.Message) error {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()

	if p.crashed {
		return context.Canceled
	}

	p.begin(p, m)

	return nil
}

func (p *process) leave(m *pipeline.Message) {
	p.ledger.mu.Lock()
	defer p.ledger.mu.Unlock()

	delete(p.running[p], spotOf(m))
}
