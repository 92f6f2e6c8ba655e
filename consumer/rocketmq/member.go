package rocketmq

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// member is one membership. It has connections of its own, since brokers know members by their connections.
type member struct {
	broker  *Broker
	options Options
	log     *zap.Logger
	routes  *routes.Table
	client  *remoting.Client

	group, instance string
	id              string // at the brokers
	began           time.Time
	// topics are those subscribed to, sorted; retry is the group's retry topic, empty for a broadcasting member.
	topics    []string
	retry     string
	broadcast bool
	orderly   bool // queues are locked

	old     atomic.Bool // whether a broker is of version 4
	file    *offsetFile // of a broadcasting member
	stop    context.CancelFunc
	running sync.WaitGroup
	beat    chan struct{} // asks for a heartbeat
	look    chan struct{} // asks for a look at who else there is
	peers   chan struct{} // says that the members have changed

	mu         sync.Mutex
	leases     map[pipeline.Queue]*lease
	leaving    map[pipeline.Queue]*lease // taken away and not released yet, where queues are locked
	generation uint64
	changed    chan struct{} // closed at the next generation and at the end
	cause      error         // why the membership has ended; nil while it lasts
	epoch      uint64        // of the last lease
	version    int64         // of the subscription, ms
	stale      bool          // whether routes are to be asked for again at the next look
	warning    string        // what is wrong with the group
}

var _ consumer.Member = (*member)(nil)

// newMember checks a subscription and makes a member of it that has not said anything to anybody yet.
func newMember(b *Broker, s consumer.Subscription) (*member, error) {
	if err := check(s); err != nil {
		return nil, err
	}

	m := &member{
		broker: b, options: b.options, routes: b.routes, log: b.options.Log.With(zap.String("group", s.Group)),
		group: s.Group, instance: s.Instance, id: madeID(s.Instance, s.Broadcast), broadcast: s.Broadcast,
		orderly: b.options.Orderly && !s.Broadcast,
		topics:  slices.Compact(slices.Sorted(slices.Values(s.Topics))),
		began:   time.Now(),
		stop:    func() {}, beat: make(chan struct{}, 1), look: make(chan struct{}, 1), peers: make(chan struct{}, 1),
		leases: map[pipeline.Queue]*lease{}, leaving: map[pipeline.Queue]*lease{},
		changed: make(chan struct{}), version: time.Now().UnixMilli(),
	}

	if !s.Broadcast {
		m.retry = consumer.RetryTopic(s.Group)
		m.topics = slices.DeleteFunc(m.topics, func(topic string) bool { return topic == m.retry })
	}

	settings := b.options.remoting()
	settings.Greet, settings.Handle = m.greet, m.answer
	m.client = remoting.NewClient(settings)

	return m, nil
}

func check(s consumer.Subscription) error {
	wrong := []error{routes.CheckGroup(s.Group)}

	if len(s.Topics) == 0 {
		wrong = append(wrong, fmt.Errorf("rocketmq: joining %q: no topics", s.Group))
	}

	for _, topic := range s.Topics {
		wrong = append(wrong, routes.CheckTopic(topic))
	}

	if s.Instance != "" {
		if err := routes.CheckGroup(s.Instance); err != nil {
			wrong = append(wrong, fmt.Errorf("rocketmq: the instance is named as groups are: %w", err))
		}
	} else if s.Broadcast {
		wrong = append(wrong, fmt.Errorf(
			"rocketmq: joining %q: a broadcasting member needs an instance, by which its offsets are found again", s.Group))
	}

	return errors.Join(wrong...)
}

// begin makes the member known and starts its goroutines.
func (m *member) begin(ctx context.Context) error {
	if err := m.introduce(ctx); err != nil {
		return m.failed(err)
	}

	if m.broadcast {
		file, err := openOffsets(m.options.OffsetDir, m.instance, m.id, m.wire(m.group), m.name)
		if err != nil {
			return err
		}

		if m.file = file; file.passed != nil {
			m.log.Warn("a damaged file of offsets was put aside; the copy of the commit before it counts", zap.Error(file.passed))
		}
	}

	life, stop := context.WithCancel(context.WithoutCancel(ctx))

	m.mu.Lock()
	defer m.mu.Unlock()

	if m.cause != nil { // the broker was closed meanwhile
		stop()

		return m.cause
	}

	m.stop = stop

	m.running.Go(func() { m.beats(life) })
	m.running.Go(func() { m.looks(life) })

	if !m.broadcast {
		m.running.Go(func() { m.compares(life) })
	}

	return nil
}

// everything returns all topics that the member reads.
func (m *member) everything() []string {
	if m.retry == "" {
		return m.topics
	}

	return append(slices.Clone(m.topics), m.retry)
}

// wire returns the name of a topic or group as it is on the wire.
func (m *member) wire(name string) string { return routes.Namespace(m.options.Namespace).Wrap(name) }

// name is the opposite of wire.
func (m *member) name(wire string) string { return routes.Namespace(m.options.Namespace).Unwrap(wire) }

// Leave ends the membership; see [consumer.Membership]. Brokers that cannot be told notice by themselves.
func (m *member) Leave(ctx context.Context) error {
	// A heartbeat or a lock that a broker is still busy with must not be cut off: carried out after the farewell it would make
	// us a member or an owner again, whom the others wait for.
	patient := context.AfterFunc(ctx, m.client.Close)
	defer patient()

	if !m.settle(consumer.ErrLeft) {
		return m.over()
	}

	m.running.Wait()

	if m.orderly {
		m.unlockRest(ctx)
	}

	m.unregister(ctx)
	m.end(consumer.ErrLeft)

	return nil
}

// settle ends all leases and has the goroutines stop. It reports whether the membership had not ended before.
func (m *member) settle(cause error) bool {
	m.mu.Lock()

	first := m.cause == nil
	if first {
		m.cause = cause
		close(m.changed)
	}

	for _, l := range m.leases {
		l.end(m.cause)
	}

	for _, l := range m.leaving {
		l.end(m.cause)
	}

	stop := m.stop
	m.mu.Unlock()

	stop()

	return first
}

// end ends everything of the member without a word to the brokers.
func (m *member) end(cause error) {
	m.settle(cause)
	m.client.Close()
	m.running.Wait()
	m.broker.remove(m)

	if m.file != nil {
		m.file.close()
	}
}

// over returns why the membership has ended, or nil.
func (m *member) over() error {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.cause
}

// call asks a broker something that it answers at once.
func (m *member) call(ctx context.Context, addr string, request *remoting.Command, accept ...int) (*remoting.Command, error) {
	ctx, cancel := context.WithTimeout(ctx, m.options.CallTimeout)
	defer cancel()

	answer, err := m.client.Call(ctx, addr, request, accept...)
	if err != nil {
		return nil, m.failed(err)
	}

	if answer.Version < firstOfFive {
		m.old.Store(true)
	}

	return answer, nil
}

// failed returns err, or what ended the membership when that is why.
func (m *member) failed(err error) error {
	if cause := m.over(); cause != nil && errors.Is(err, remoting.ErrClosed) {
		return cause
	}

	return err
}

// nudge asks a goroutine for its next round, which may have been asked for already.
func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
