package rocketmqfake

import (
	"maps"
	"slices"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

// silence is after what time brokers forget a member of which they hear nothing.
const silence = 2 * time.Minute

// group is a consumer group at one broker.
type group struct {
	disabled  bool
	broadcast bool
	order     []*link // of joining
	members   map[*link]string
	strangers map[string]bool // see Cluster.Storm
	subs      map[string]subscription
}

type groupConfig struct {
	GroupName     string `json:"groupName"`
	ConsumeEnable bool   `json:"consumeEnable"`
}

type subscription struct {
	Topic          string `json:"topic"`
	SubString      string `json:"subString"`
	SubVersion     int64  `json:"subVersion"`
	ExpressionType string `json:"expressionType"`
}

type consumerData struct {
	GroupName     string         `json:"groupName"`
	MessageModel  string         `json:"messageModel"`
	Subscriptions []subscription `json:"subscriptionDataSet"`
}

func (b *Broker) group(name string) *group {
	if b.groups[name] == nil {
		b.groups[name] = &group{
			members: map[*link]string{}, strangers: map[string]bool{}, subs: map[string]subscription{},
		}
	}

	return b.groups[name]
}

// admit returns a group, which is made when it may be, or nil.
func (b *Broker) admit(name string) *group {
	if b.groups[name] == nil && b.cluster.options.NoAutoCreate {
		return nil
	}

	return b.group(name)
}

func (g *group) remove(l *link) {
	delete(g.members, l)
	g.order = slices.DeleteFunc(g.order, func(other *link) bool { return other == l })

	if len(g.order) == 0 {
		clear(g.subs)
	}
}

// heartbeat notes a member with what it subscribes to.
func (b *Broker) heartbeat(l *link, r *remoting.Command) *remoting.Command {
	var beat struct {
		ClientID  string         `json:"clientID"` //nolint:tagliatelle // the protocol's spelling
		Consumers []consumerData `json:"consumerDataSet"`
	}

	if bad := decodeBody(r, &beat); bad != nil {
		return bad
	}

	for _, data := range beat.Consumers {
		g := b.admit(data.GroupName)
		if g == nil {
			continue
		}

		b.ensure(retryMark+data.GroupName, 1)

		_, known := g.members[l]
		if !known {
			g.order = append(g.order, l)
		}

		if l.ended { // it was overtaken by the end of its connection: a member of which nothing is heard any more
			b.cluster.after(silence, func() { b.gone(l) })
		}

		g.members[l], g.broadcast = beat.ClientID, data.MessageModel == "BROADCASTING"

		if g.subscribe(data.Subscriptions) || !known {
			b.notify(data.GroupName)
		}
	}

	return ok(map[string]string{"IS_SUPPORT_HEART_BEAT_V2": yes, "IS_SUB_CHANGE": yes}, nil)
}

// subscribe takes the subscriptions of the newest heartbeat, whoever sent it, and reports whether topics came or went.
func (g *group) subscribe(subs []subscription) (changed bool) {
	for _, s := range subs {
		old, found := g.subs[s.Topic]
		if !found || s.SubVersion > old.SubVersion {
			g.subs[s.Topic] = s
		}

		changed = changed || !found
	}

	maps.DeleteFunc(g.subs, func(name string, _ subscription) bool {
		gone := !slices.ContainsFunc(subs, func(s subscription) bool { return s.Topic == name })
		changed = changed || gone

		return gone
	})

	return changed
}

// notify tells the members of a group that the membership has changed.
func (b *Broker) notify(name string) {
	g := b.groups[name]
	if g == nil || g.broadcast {
		return
	}

	for _, l := range g.order {
		l.push(&remoting.Command{
			Code: remoting.NotifyConsumerChange, Ext: map[string]string{"consumerGroup": name},
		}, nil)
	}
}

func (b *Broker) unregister(r *remoting.Command) *remoting.Command {
	id := r.Ext["clientID"]

	name := r.Ext["consumerGroup"]
	if g := b.groups[name]; g != nil {
		for l, member := range g.members {
			if member == id {
				g.remove(l)
				b.notify(name)
			}
		}
	}

	return ok(nil, nil)
}

func (b *Broker) members(r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)
	name := f.text("consumerGroup")

	if bad := f.failed(); bad != nil {
		return bad
	}

	g := b.groups[name]
	if g == nil || len(g.members)+len(g.strangers) == 0 {
		return fail(remoting.SystemError, "no consumer for this group, %s", name)
	}

	ids := slices.Sorted(maps.Keys(g.strangers))
	for _, l := range g.order {
		ids = append(ids, g.members[l])
	}

	return asJSON(map[string]any{"consumerIdList": ids})
}

// relay passes a request on to the member that it names, and its answer back.
func (b *Broker) relay(l *link, r *remoting.Command) *remoting.Command {
	f := fieldsOf(r)
	name, id := f.text("consumerGroup"), f.text("clientId")

	if bad := f.failed(); bad != nil {
		return bad
	}

	g := b.groups[name]
	if g != nil {
		for _, member := range g.order {
			if g.members[member] != id {
				continue
			}

			member.push(&remoting.Command{Code: r.Code, Ext: r.Ext, Body: r.Body}, func(answer *remoting.Command) {
				l.answer(r, &remoting.Command{Code: answer.Code, Remark: answer.Remark, Ext: answer.Ext, Body: answer.Body})
			})

			return nil
		}
	}

	return fail(remoting.SystemError, "The Consumer <%s> <%s> not online", name, id)
}
