package rocketmq

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/pipeline"
)

// member is one membership. It has connections of its own, since brokers know members by their connections.
type member struct {
	broker  *Broker
	options Options
	log     *zap.Logger
	routes  *routes
	client  *remoting.Client

	group string
	id    string // at the brokers
	// topics are those subscribed to, sorted; retry is the group's retry topic, empty for a broadcasting member.
	topics    []string
	retry     string
	broadcast bool
	instance  string
	started   time.Time

	file    *offsetFile // of a broadcasting member
	stop    context.CancelFunc
	running sync.WaitGroup
	beat    chan struct{} // asks for a heartbeat
	look    chan struct{} // asks for a look at who else there is

	mu         sync.Mutex
	leases     map[pipeline.Queue]*lease
	leaving    map[pipeline.Queue]*lease // taken away and not released yet, where the broker holds queues back
	generation uint64
	changed    chan struct{} // closed at the next generation and at the end
	cause      error         // why the membership has ended; nil while it lasts
	epoch      uint64        // of the last lease
	version    int64         // of the subscription, ms
	stale      bool          // whether routes are to be asked for again at the next look
}

var _ consumer.Member = (*member)(nil)

// newMember checks a subscription and makes a member of it that has not said anything to anybody yet.
func newMember(b *Broker, s consumer.Subscription) (*member, error) {
	o := b.options
	m := &member{
		broker: b, options: o, routes: b.routes, group: s.Group, broadcast: s.Broadcast,
		topics: slices.Compact(slices.Sorted(slices.Values(s.Topics))), instance: cmp.Or(s.Instance, o.Instance),
		started: time.Now(), version: time.Now().UnixMilli(), log: o.Log.With(zap.String("group", s.Group)),
		beat: make(chan struct{}, 1), look: make(chan struct{}, 1), changed: make(chan struct{}), stop: func() {},
		leases: map[pipeline.Queue]*lease{}, leaving: map[pipeline.Queue]*lease{},
	}

	if err := m.check(); err != nil {
		return nil, err
	}

	if !s.Broadcast {
		m.retry = consumer.RetryTopic(s.Group)
		m.topics = slices.DeleteFunc(m.topics, func(topic string) bool { return topic == m.retry })
	}

	m.id = cmp.Or(o.ClientID, m.madeID())
	settings := o.remoting()
	settings.Greet, settings.Handle = m.greet, m.answer
	m.client = remoting.NewClient(settings)

	return m, nil
}

func (m *member) check() error {
	wrong := []error{checkName("group", m.group, maxGroup)}

	if len(m.topics) == 0 {
		wrong = append(wrong, fmt.Errorf("rocketmq: joining %q: no topics", m.group))
	}

	for _, topic := range m.topics {
		wrong = append(wrong, checkName("topic", topic, maxTopic+len(retryMark)+maxGroup))
	}

	switch {
	case m.instance != "":
		wrong = append(wrong, checkName("instance", m.instance, maxGroup))
	case m.broadcast:
		wrong = append(wrong, fmt.Errorf(
			"rocketmq: joining %q: a broadcasting member needs an instance, by which its offsets are found again", m.group))
	}

	if m.broadcast && m.options.Orderly {
		wrong = append(wrong, fmt.Errorf("%w: Options.Orderly, since nobody else has its queues", ErrBroadcast))
	}

	return errors.Join(wrong...)
}

// madeID returns a name at the brokers. That of a broadcasting member stays the same, since RocketMQ's own clients keep their
// offsets by it; any other is nobody else's, and sorts like the instance.
func (m *member) madeID() string {
	switch {
	case m.broadcast:
		return localIP() + "@" + m.instance
	case m.instance != "":
		return localIP() + "@" + m.instance + "#" + chance()
	default:
		return localIP() + "@" + madeUp()
	}
}

// begin makes the member known and starts its goroutines.
func (m *member) begin(ctx context.Context) error {
	for _, topic := range m.topics {
		found, err := m.routes.refresh(ctx, topic)
		if err != nil {
			return m.routes.unknown(ctx, err)
		}

		if len(found.readable) == 0 {
			return fmt.Errorf("%w: topic %q has no queue to read from: its permissions, or those of its brokers, forbid it",
				ErrNoPermission, topic)
		}
	}

	if err := m.introduce(ctx); err != nil {
		return err
	}

	if m.broadcast {
		file, err := openOffsets(m.options.OffsetDir, m.id, m.group)
		if err != nil {
			return err
		}

		m.file = file
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

	return nil
}

// everything returns all topics that the member reads.
func (m *member) everything() []string {
	if m.retry == "" {
		return m.topics
	}

	return append(slices.Clone(m.topics), m.retry)
}

// Leave ends the membership; see [consumer.Membership]. Brokers that cannot be told notice by themselves.
func (m *member) Leave(ctx context.Context) error {
	if err := m.over(); err != nil {
		return err
	}

	m.settle(consumer.ErrLeft)
	m.unregister(ctx)
	m.end(consumer.ErrLeft)

	return nil
}

// settle ends all leases and stops the goroutines. It reports whether the membership had not ended before.
func (m *member) settle(cause error) bool {
	m.mu.Lock()

	first := m.cause == nil
	if first {
		m.cause = cause
		close(m.changed)
	}

	for _, l := range m.leases {
		l.end(cause)
	}

	for _, l := range m.leaving {
		l.end(cause)
	}

	stop := m.stop
	m.mu.Unlock()

	stop()
	m.running.Wait()

	return first
}

// end ends everything of the member without a word to the brokers.
func (m *member) end(cause error) {
	m.settle(cause)
	m.client.Close()
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
