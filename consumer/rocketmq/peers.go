package rocketmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/millrace/millrace/consumer/rocketmq/loosejson"
	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

const (
	// compareEvery is how often a member asks another one how it subscribes while the members stay the same.
	compareEvery = 5 * time.Minute
	// settling is how long after a change of the members it asks: others may come and go at the same time.
	settling = 2 * time.Second
	// maxWish is how much of somebody's subscription is told.
	maxWish = 200
)

// compares asks another member of the group how it subscribes, after each change of the members and now and then, until ctx
// ends. Brokers look at nobody's subscription but the last, and deal out the queues as if all had the same.
func (m *member) compares(ctx context.Context) {
	timer := time.NewTimer(settling)
	defer timer.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-m.peers:
			timer.Reset(settling)

			continue
		case <-timer.C:
		}

		if warning, err := m.compare(ctx); err == nil {
			m.warn(warning)
		} else if ctx.Err() == nil {
			m.log.Debug("how another member subscribes is not known", zap.Error(err))
		}

		timer.Reset(compareEvery)
	}
}

// compare asks the member behind us in the list, so that each is asked by one: where not all are alike, two find out at least.
// It returns what is wrong, if anything.
func (m *member) compare(ctx context.Context) (string, error) {
	found, err := m.routes.Of(ctx, m.topics[0])
	if err != nil {
		return "", err //nolint:wrapcheck // it is logged
	}

	ids, addr, err := m.list(ctx, found)
	if err != nil {
		return "", err
	}

	slices.Sort(ids)

	at := slices.Index(ids, m.id)
	if at < 0 {
		return "", errAbsent
	}

	peer := ids[(at+1)%len(ids)]
	if peer == m.id {
		return "", nil
	}

	answer, err := m.call(ctx, addr, &remoting.Command{Code: remoting.GetRunningInfo, Ext: map[string]string{
		fieldGroup: m.wire(m.group), "clientId": peer, "jstackEnable": "false",
	}})
	if err != nil {
		return "", fmt.Errorf("rocketmq: member %s is asked what it does: %w", peer, err)
	}

	theirs, err := readSubscriptions(answer.Body)
	if err != nil {
		return "", fmt.Errorf("rocketmq: what member %s does: %w", peer, err)
	}

	differences := m.differences(theirs)
	if len(differences) == 0 {
		return "", nil
	}

	return fmt.Sprintf("member %s of group %q subscribes differently (%s): queues are dealt out as if all members wanted "+
		"the same, so that messages are missed; give all of them the same topics and filters, or each job a group of its own",
		peer, m.group, strings.Join(differences, "; ")), nil
}

// readSubscriptions reads how a member subscribes from what it says of itself.
func readSubscriptions(body []byte) ([]subscription, error) {
	strict, err := loosejson.Strict(body)
	if err != nil {
		return nil, fmt.Errorf("rocketmq: %w", err)
	}

	var info struct {
		Set []struct {
			Topic      string `json:"topic"`
			Expression string `json:"subString"`
			Kind       string `json:"expressionType"`
		} `json:"subscriptionSet"`
	}

	if err := json.Unmarshal(strict, &info); err != nil {
		return nil, fmt.Errorf("rocketmq: subscriptions: %w", err)
	}

	if len(info.Set) == 0 {
		return nil, errors.New("rocketmq: it says nothing of its subscriptions")
	}

	var all []subscription
	for _, s := range info.Set {
		all = append(all, subscription{Topic: s.Topic, Expression: s.Expression, Kind: s.Kind})
	}

	return all, nil
}

// differences says topic by topic how another member subscribes differently.
func (m *member) differences(theirs []subscription) []string {
	ours, others, topics := map[string]string{}, map[string]string{}, m.everything()

	for _, topic := range topics {
		ours[topic] = m.subscription(topic).wish()
	}

	for _, s := range theirs {
		topic := m.name(s.Topic)
		others[topic] = s.wish()
		topics = append(topics, topic)
	}

	slices.Sort(topics)

	var differences []string

	for _, topic := range slices.Compact(topics) {
		if there, here := others[topic], ours[topic]; there != here && topic != m.retry {
			differences = append(differences,
				fmt.Sprintf("topic %q: there %s, here %s", topic, orNothing(there), orNothing(here)))
		}
	}

	return differences
}

// wish says what of a topic is wanted; it is the same for what means the same.
func (s subscription) wish() string {
	if s.Kind != "" && s.Kind != kindTag {
		return fmt.Sprintf("%s %.*q", s.Kind, maxWish, s.Expression)
	}

	tags := Filter{Tags: s.Expression}.tags()
	if len(tags) == 0 {
		return "everything"
	}

	slices.Sort(tags)

	return fmt.Sprintf("tags %.*q", maxWish, strings.Join(slices.Compact(tags), " || "))
}

func orNothing(wish string) string {
	if wish == "" {
		return "nothing"
	}

	return wish
}

// warn has the assignment tell what is wrong with the group, or that nothing is any more.
func (m *member) warn(text string) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.warning == text || m.cause != nil {
		return
	}

	m.warning = text

	if m.generation > 0 {
		m.bump()
	}
}
