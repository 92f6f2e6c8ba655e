package jobfile

import "time"

// RocketMQ is a cluster of Apache RocketMQ.
type RocketMQ struct {
	// NameServers are the addresses of the name servers.
	NameServers []string
	// Namespace separates the users of one cluster.
	Namespace string
	// AccessKey, SecretKey and SecurityToken sign what is sent; empty means that nothing is signed.
	AccessKey, SecretKey, SecurityToken string
	// TLS is spoken to all servers; CA is the file of a private authority, empty for the system's.
	TLS bool
	CA  string
	// Tags and SQL say what is wanted of topics, by their names.
	Tags, SQL map[string]string
	// Orderly locks queues at the brokers, OffsetsOnly keeps nothing of a checkpoint but its offset, JavaFirstBoot begins as
	// RocketMQ's own clients do.
	Orderly, OffsetsOnly, JavaFirstBoot bool
	// OffsetDir is where broadcasting members keep their offsets.
	OffsetDir string
	// DelayLevels are the brokers' delays.
	DelayLevels []time.Duration
}

func (d *decoder) rocketMQ(n *node) *RocketMQ {
	if n.kind != table {
		return &RocketMQ{NameServers: (&fields{decoder: d, node: &node{
			kind: table, at: n.at, entries: []entry{{key: keyNameServers, at: n.at, value: n}},
		}, what: typeRocketMQ}).texts(keyNameServers)}
	}

	f := d.fields(n, typeRocketMQ, keyNameServers, "namespace", "access_key", "secret_key", "security_token", "tls", "ca",
		"tags", "sql", "orderly", "offsets_only", "offset_dir", "java_first_boot", "delay_levels")
	r := &RocketMQ{
		NameServers: f.texts(keyNameServers), Namespace: f.text("namespace"),
		AccessKey: f.text("access_key"), SecretKey: f.text("secret_key"), SecurityToken: f.text("security_token"),
		TLS: f.truth("tls"), CA: f.text("ca"), Tags: f.textTable("tags"), SQL: f.textTable("sql"),
		Orderly: f.truth("orderly"), OffsetsOnly: f.truth("offsets_only"), JavaFirstBoot: f.truth("java_first_boot"),
		OffsetDir: f.text("offset_dir"), DelayLevels: f.durations("delay_levels"),
	}

	if f.missing(keyNameServers) {
		d.mistakef(n.at, "%s has no name_servers; name at least one, such as 127.0.0.1:9876", typeRocketMQ)
	}

	if (r.AccessKey == "") != (r.SecretKey == "") {
		d.mistakef(n.at, "of access_key and secret_key only one is given; give both, or none")
	}

	return r
}
