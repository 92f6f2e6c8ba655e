package jobfile

import (
	"fmt"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins"
)

// RocketMQ is a cluster of Apache RocketMQ. The zero value of a field that is not in the file means the broker's default.
type RocketMQ struct {
	// NameServers are the addresses of the name servers.
	NameServers []string
	// Namespace separates the users of one cluster.
	Namespace string
	// AccessKey, SecretKey and SecurityToken sign what is sent; empty means that nothing is signed. The file's Redactor knows
	// the last two.
	AccessKey, SecretKey, SecurityToken string
	// TLS is spoken to all servers; CA is the file of a private authority, empty for the system's. Certificate and Key are the
	// files by which we show who we are, empty for not at all. ServerName is the name in the servers' certificates, empty for
	// their addresses.
	TLS                              bool
	CA, Certificate, Key, ServerName string
	// Tags and SQL say what is wanted of topics, by their names.
	Tags, SQL map[string]string
	// Orderly locks queues at the brokers, OffsetsOnly keeps nothing of a checkpoint but its offset, JavaFirstBoot begins as
	// RocketMQ's own clients do.
	Orderly, OffsetsOnly, JavaFirstBoot bool
	// Circle deals queues to members one by one.
	Circle bool
	// OffsetDir is where broadcasting members keep their offsets.
	OffsetDir string
	// DelayLevels are the brokers' delays.
	DelayLevels []time.Duration
	// HoldPull is how long a broker holds a pull that finds nothing; CallTimeout and DialTimeout bound other calls and the making
	// of connections; HeartbeatEvery, RoutesEvery and RebalanceEvery are how often these are done.
	HoldPull, CallTimeout, DialTimeout          time.Duration
	HeartbeatEvery, RoutesEvery, RebalanceEvery time.Duration
}

func (d *decoder) rocketMQ(n *node) *RocketMQ {
	if n.kind != table {
		n = &node{kind: table, at: n.at, entries: []entry{{key: keyNameServers, at: n.at, value: n}}}
	}

	keys := RocketMQKeys()
	known := make([]string, len(keys))

	for i, key := range keys {
		known[i] = key.Name
	}

	f := d.fields(n, typeRocketMQ, known...)
	r := &RocketMQ{
		NameServers: f.texts(keyNameServers), Namespace: f.text("namespace"),
		AccessKey: f.text("access_key"), SecretKey: f.secret("secret_key"), SecurityToken: f.secret("security_token"),
		TLS: f.truth("tls"), CA: f.text("ca"), Certificate: f.text("certificate"), Key: f.text("certificate_key"),
		ServerName: f.text("server_name"), Tags: f.textTable(keyTags), SQL: f.textTable(keySQL),
		Orderly: f.truth("orderly"), OffsetsOnly: f.truth("offsets_only"), JavaFirstBoot: f.truth("java_first_boot"),
		Circle:    f.oneOf("allocation", "average", "circle") == "circle",
		OffsetDir: f.text("offset_dir"), DelayLevels: f.durations("delay_levels"), HoldPull: f.duration("hold_pull"),
		CallTimeout: f.duration("call_timeout"), DialTimeout: f.duration("dial_timeout"),
		HeartbeatEvery: f.duration("heartbeat_every"), RoutesEvery: f.duration("routes_every"),
		RebalanceEvery: f.duration("rebalance_every"),
	}

	if f.missing(keyNameServers) {
		d.mistakef(n.at, "%s has no name_servers; name at least one, such as 127.0.0.1:9876", typeRocketMQ)
	}

	f.addresses(r.NameServers)
	f.together("access_key", "secret_key")
	f.together("certificate", "certificate_key")
	f.needs("secret_key", "security_token")
	f.filters()

	if !r.TLS {
		f.needs("tls", "ca", "certificate", "server_name")
	}

	if levels := n.get("delay_levels"); levels != nil && !slices.IsSorted(r.DelayLevels) {
		d.mistakef(levels.at,
			"delay_levels do not grow; write them as the brokers' messageDelayLevel has them, the shortest first")
	}

	return r
}

// secret returns the text of a key, which is never printed.
func (f fields) secret(key string) string {
	text := f.text(key)
	f.hide(text)

	return text
}

// hide makes a text one of the file's secrets.
func (d *decoder) hide(text string) {
	if text != "" {
		d.secrets = append(d.secrets, plugins.NewSecret(text))
	}
}

// addresses checks the addresses of name servers.
func (f fields) addresses(addrs []string) {
	n := f.get(keyNameServers)
	if n == nil {
		return
	}

	if n.kind == list && len(n.items) == 0 {
		f.mistakef(n.at, "name_servers is empty; name at least one, such as 127.0.0.1:9876")
	}

	for i, addr := range addrs {
		at := n
		if n.kind == list {
			at = n.items[i]
		}

		if host, port, err := net.SplitHostPort(addr); addr != "" && (err != nil || host == "" || port == "") {
			f.mistakef(at.at, "name server %s is not host:port; write it like 127.0.0.1:9876", at.is())
		}
	}
}

// together reports one of two keys without the other.
func (f fields) together(one, other string) {
	a, b := f.node.get(one), f.node.get(other)

	switch {
	case a != nil && b == nil:
		f.mistakef(a.at, "%s stands without %s; give both, or none", one, other)
	case a == nil && b != nil:
		f.mistakef(b.at, "%s stands without %s; give both, or none", other, one)
	}
}

// needs reports keys that mean nothing without another one.
func (f fields) needs(other string, keys ...string) {
	if f.node.get(other) != nil && other != "tls" {
		return
	}

	for _, key := range keys {
		if n := f.node.get(key); n != nil {
			f.mistakef(n.at, "%s means nothing without %s; add it, or remove %s", key, other, key)
		}
	}
}

// filters reports topics with two filters.
func (f fields) filters() {
	tags, sql := f.node.get(keyTags), f.node.get(keySQL)
	if tags == nil || sql == nil {
		return
	}

	for _, e := range sql.entries {
		if tags.get(e.key) != nil {
			f.mistakef(e.at,
				"topic %q is chosen by tags and by sql; brokers do one of them, so remove it from tags or from sql", e.key)
		}
	}
}

// nameForm is what RocketMQ takes as the name of a topic or a group.
var nameForm = regexp.MustCompile(`^[%|a-zA-Z0-9_-]+$`)

// fitRocketMQ reports what the jobs of a file want and RocketMQ does not do.
func (d *decoder) fitRocketMQ(f *File, broker *node) {
	var topics []string

	for _, job := range f.Jobs {
		topics = append(topics, job.Topics()...)

		if group := job.Group(); group != "" && !nameForm.MatchString(group) {
			d.mistakef(job.find("source.group"),
				"RocketMQ takes no group named %q; name it with source.group, of letters, digits, _ and -", group)
		}

		for i, topic := range job.Topics() {
			if topic != "" && !nameForm.MatchString(topic) {
				d.mistakef(job.find(fmt.Sprintf("source.topics[%d]", i)),
					"RocketMQ has no topic named %q; names there are of letters, digits, _ and -", topic)
			}
		}
	}

	topics = slices.Compact(slices.Sorted(slices.Values(topics)))

	if broker.kind != table || len(topics) == 0 {
		return
	}

	for _, key := range []string{keyTags, keySQL} {
		filters := broker.get(key)
		if filters == nil {
			continue
		}

		for _, e := range filters.entries {
			if !slices.Contains(topics, e.key) {
				d.mistakef(e.at, "%s names topic %q, which no job of the file reads; %s",
					key, e.key, pipeline.Suggest(e.key, topics))
			}
		}
	}
}
