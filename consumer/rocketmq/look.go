package rocketmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/routes"
	"github.com/millrace/millrace/pipeline"
)

const (
	// fieldGroup is where requests have the group.
	fieldGroup = "consumerGroup"
	// soon is how long a look that did not tell everything waits for the next.
	soon = time.Second
	// maxAbsent is how often in a row the group's list may lack us, with heartbeats in between, before we believe it.
	maxAbsent = 3
)

// errAbsent is the failure of a look at a list of members without us.
var errAbsent = errors.New("the broker's list of members does not have us")

// looks keeps the assignment current until ctx ends: in turn, and when asked to.
func (m *member) looks(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()

	routed := time.Now() // when the routes were asked for last; begin has just done it
	absent := map[string]int{}

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-m.look:
		}

		if m.outdated() || time.Since(routed) >= m.options.RoutesEvery {
			m.reroute(ctx)

			routed = time.Now()
		}

		pause := m.balance(ctx, absent)
		timer.Reset(min(pause, max(m.options.RoutesEvery-time.Since(routed), soon)))
	}
}

// suspect has the routes asked for again soon.
func (m *member) suspect() {
	m.mu.Lock()
	m.stale = true
	m.mu.Unlock()
}

// outdated reports whether a call has met something that a new route may cure, and forgets it.
func (m *member) outdated() bool {
	m.mu.Lock()
	defer m.mu.Unlock()

	stale := m.stale
	m.stale = false

	return stale
}

// reroute asks for the routes of all topics. Where that fails the known ones stay.
func (m *member) reroute(ctx context.Context) {
	before := m.addresses()

	for _, topic := range m.everything() {
		if _, err := m.routes.Refresh(ctx, topic); err != nil && ctx.Err() == nil {
			m.log.Warn("a route is not refreshed; the known one stays", zap.String("topic", topic), zap.Error(err))
		}
	}

	if !slices.Equal(before, m.addresses()) {
		nudge(m.beat)
	}
}

// balance looks up the members' shares and makes ours the assignment. What cannot be found out stays as it is. It returns
// when to look again.
func (m *member) balance(ctx context.Context, absent map[string]int) time.Duration {
	pause := m.options.RebalanceEvery
	shares := map[string][]pipeline.Queue{}

	for _, topic := range m.everything() {
		share, err := m.share(ctx, topic)

		switch {
		case ctx.Err() != nil:
			return pause
		case errors.Is(err, errAbsent) && absent[topic] >= maxAbsent:
			m.log.Error("the brokers do not count us among the group's members; giving up the queues",
				zap.String("topic", topic), zap.String("client", m.id))

			shares[topic] = nil
		case err != nil:
			if errors.Is(err, errAbsent) {
				absent[topic]++
				nudge(m.beat)
			}

			m.log.Debug("the members of the group are not known; the assignment stays",
				zap.String("topic", topic), zap.Error(err))
		default:
			absent[topic] = 0
			shares[topic] = share
		}

		if err != nil {
			pause = soon
		}
	}

	if m.orderly {
		pause = min(pause, m.secure(ctx, shares))
	}

	if len(shares) > 0 && m.assign(shares) {
		m.touch()
		nudge(m.beat)
	}

	return pause
}

// share returns which queues of a topic are ours.
func (m *member) share(ctx context.Context, topic string) ([]pipeline.Queue, error) {
	found, err := m.routes.Of(ctx, topic)
	if err != nil {
		return nil, err //nolint:wrapcheck // it is logged
	}

	if m.broadcast {
		return found.Readable, nil
	}

	ids, _, err := m.list(ctx, found)
	if err != nil {
		return nil, err
	}

	if !slices.Contains(ids, m.id) {
		return nil, errAbsent
	}

	if m.options.Circle {
		return consumer.AllocateCircle(found.Readable, ids, m.id), nil
	}

	return consumer.Allocate(found.Readable, ids, m.id), nil
}

// list asks the brokers of a topic, in a random order, for the group's members, until one tells them. It returns them with the
// address of that broker.
func (m *member) list(ctx context.Context, found *routes.Route) (ids []string, addr string, err error) {
	request := &remoting.Command{Code: remoting.GetConsumerList, Ext: map[string]string{fieldGroup: m.wire(m.group)}}
	addrs := found.Addresses()
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })

	err = errors.New("no broker")

	for _, addr = range addrs {
		var answer *remoting.Command

		if answer, err = m.call(ctx, addr, request); err != nil {
			continue
		}

		var list struct {
			IDs []string `json:"consumerIdList"`
		}

		if err = json.Unmarshal(answer.Body, &list); err == nil && len(list.IDs) > 0 {
			return list.IDs, addr, nil
		}
	}

	return nil, "", fmt.Errorf("rocketmq: no broker tells the members of group %q: %w", m.group, err)
}
