package rocketmq

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

// heartbeat is what brokers are told of a member.
type heartbeat struct {
	ClientID    string         `json:"clientID"` //nolint:tagliatelle // the protocol's spelling
	Producers   []string       `json:"producerDataSet"`
	Consumers   []consumerData `json:"consumerDataSet"`
	Fingerprint int            `json:"heartbeatFingerprint"`
	WithoutSub  bool           `json:"withoutSub"`
}

type consumerData struct {
	Group         string         `json:"groupName"`
	Type          string         `json:"consumeType"`
	Model         string         `json:"messageModel"`
	From          string         `json:"consumeFromWhere"`
	Subscriptions []subscription `json:"subscriptionDataSet"`
	UnitMode      bool           `json:"unitMode"`
}

// subscription is the wish for one topic as it goes over the wire.
type subscription struct {
	ClassFilter bool     `json:"classFilterMode"`
	Topic       string   `json:"topic"`
	Expression  string   `json:"subString"`
	Tags        []string `json:"tagsSet"`
	Codes       []int32  `json:"codeSet"`
	Version     int64    `json:"subVersion"`
	Kind        string   `json:"expressionType"`
}

// subscription returns the member's wish for a topic.
func (m *member) subscription(topic string) subscription {
	f := m.options.Filters[topic]
	s := subscription{Topic: m.wire(topic), Tags: []string{}, Codes: []int32{}, Version: m.subVersion()}
	s.Expression, s.Kind = f.expression()

	for _, tag := range f.tags() {
		s.Tags = append(s.Tags, tag)
		s.Codes = append(s.Codes, hashOf(tag))
	}

	return s
}

// subVersion returns when the subscription or the assignment was changed last. Brokers heed only what is newer.
func (m *member) subVersion() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.version
}

// touch makes the subscription newer, as every change of the assignment must.
func (m *member) touch() {
	m.mu.Lock()
	defer m.mu.Unlock()

	m.version = max(m.version+1, time.Now().UnixMilli())
}

func (m *member) heartbeat() *remoting.Command {
	data := consumerData{
		Group: m.wire(m.group), Type: "CONSUME_PASSIVELY", Model: "CLUSTERING", From: startName(m.options.Start),
	}
	if m.broadcast {
		data.Model = "BROADCASTING"
	}

	for _, topic := range m.everything() {
		data.Subscriptions = append(data.Subscriptions, m.subscription(topic))
	}

	return &remoting.Command{Code: remoting.Heartbeat, Body: encode(heartbeat{
		ClientID: m.id, Producers: []string{}, Consumers: []consumerData{data},
	})}
}

func startName(s pipeline.Start) string {
	switch _, timed := s.Time(); {
	case timed:
		return "CONSUME_FROM_TIMESTAMP"
	case s.IsLast():
		return "CONSUME_FROM_LAST_OFFSET"
	default:
		return "CONSUME_FROM_FIRST_OFFSET"
	}
}

// greet makes a broker know us before anything else goes over a new connection: a member is known by its connection.
// A refusal does not matter here: the calls that follow will tell.
func (m *member) greet(ctx context.Context, conn *remoting.Conn) error {
	_, err := conn.Call(ctx, m.heartbeat())
	if routes.Code(err) >= 0 {
		m.log.Warn("a broker refuses the heartbeat", zap.String("addr", conn.Addr()), zap.Error(err))

		return nil
	}

	if err != nil {
		return fmt.Errorf("rocketmq: %w", err)
	}

	return nil
}

// beats sends heartbeats until ctx ends: in turn, and when asked to. Those under way are waited for.
func (m *member) beats(ctx context.Context) {
	ticker := time.NewTicker(m.options.HeartbeatEvery)
	defer ticker.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-m.beat:
		}

		for _, err := range m.beatAll(context.WithoutCancel(ctx)) { // see Leave
			if ctx.Err() == nil {
				m.log.Warn("a broker did not take the heartbeat", zap.Error(err))
			}
		}
	}
}

// beatAll sends a heartbeat to every server of the topics' brokers, slaves too. It returns the errors of those that failed.
func (m *member) beatAll(ctx context.Context) []error {
	request := m.heartbeat()

	return m.each(func(addr string) error {
		_, err := m.call(ctx, addr, request)

		return err
	})
}

// each calls f with every address of the known brokers and returns the errors. All are called at once: one that does not
// answer must not keep the others waiting.
func (m *member) each(f func(addr string) error) []error {
	var (
		all    sync.WaitGroup
		mu     sync.Mutex
		failed []error
	)

	for _, addr := range m.addresses() {
		all.Go(func() {
			if err := f(addr); err != nil {
				mu.Lock()
				failed = append(failed, err)
				mu.Unlock()
			}
		})
	}

	all.Wait()

	return failed
}

// addresses returns the addresses of all brokers that are known to have one of the topics.
func (m *member) addresses() []string {
	var addrs []string

	for _, topic := range m.everything() {
		if known := m.routes.Cached(topic); known != nil {
			addrs = append(addrs, known.Addresses()...)
		}
	}

	slices.Sort(addrs)

	return slices.Compact(addrs)
}

// unregister tells all brokers that the member leaves.
func (m *member) unregister(ctx context.Context) {
	request := &remoting.Command{Code: remoting.UnregisterClient, Ext: map[string]string{
		"clientID": m.id, fieldGroup: m.wire(m.group),
	}}

	for _, err := range m.each(func(addr string) error {
		_, err := m.client.Call(ctx, addr, request)

		return err //nolint:wrapcheck // it is logged
	}) {
		m.log.Warn("a broker could not be told that a member leaves", zap.Error(err))
	}
}

// encode returns v as JSON. What this package encodes are structs of texts and numbers, which never fail.
func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		return nil
	}

	return body
}
