package jobfile

import "github.com/millrace/millrace/plugins"

const (
	keyNameServers = "name_servers"
	keyTags        = "tags"
	keySQL         = "sql"
)

// RocketMQKeys describes the keys of a RocketMQ cluster, which may also be the address of its name server alone, or a list of
// them.
func RocketMQKeys() []plugins.Option {
	return []plugins.Option{
		{
			Name: keyNameServers, Type: typeText, List: true, Required: true,
			Help: "The name servers, such as 127.0.0.1:9876. A single one need not be a list.",
		},
		{Name: "namespace", Type: typeText, Help: "What all names are put into on the wire; nothing when it is left out."},
		{Name: "access_key", Type: typeText, Help: "Who signs what is sent.", Default: "nothing is signed"},
		{Name: "secret_key", Type: typeSecret, Help: "What it is signed with."},
		{Name: "security_token", Type: typeSecret, Help: "The token that comes with keys which are given for a while."},
		{Name: "tls", Type: typeBoolean, Default: isFalse, Help: "Speak TLS to all servers, which are verified."},
		{Name: "ca", Type: typeText, Help: "The file of a private authority, in PEM.", Default: "the system's"},
		{Name: "certificate", Type: typeText, Help: "The file of the certificate by which servers know us, in PEM."},
		{Name: "certificate_key", Type: typeText, Help: "The file of its key, in PEM."},
		{Name: "server_name", Type: typeText, Help: "The name in the servers' certificates.", Default: "their addresses"},
		{
			Name: keyTags, Type: typeText, Table: true,
			Help: "The tags that are wanted of a topic, such as `orders: created || paid`. Other topics are read whole.",
		},
		{
			Name: keySQL, Type: typeText, Table: true,
			Help: "The same in SQL92 over properties, which the brokers must have on (enablePropertyFilter).",
		},
		{
			Name: "orderly", Type: typeBoolean, Default: isFalse,
			Help: "Lock queues at the brokers, so that two members never have the same one.",
		},
		{
			Name: "offsets_only", Type: typeBoolean, Default: isFalse,
			Help: "Make no topics for checkpoints. What was finished above a committed offset is then done again.",
		},
		{
			Name: "allocation", Type: typeText, Values: []string{"average", "circle"}, Default: "average",
			Help: "How the members share the queues of a topic: in blocks, or dealt one by one. All must do the same.",
		},
		{
			Name: "offset_dir", Type: typeText, Default: "~/.rocketmq_offsets",
			Help: "Where broadcasting jobs keep their offsets.",
		},
		{
			Name: "java_first_boot", Type: typeBoolean, Default: isFalse,
			Help: "Begin as RocketMQ's own clients do: at 0 wherever a queue still has its first message.",
		},
		{
			Name: "delay_levels", Type: typeDuration, List: true, Default: "1s, 5s, 10s, 30s, 1m … 10m, 20m, 30m, 1h, 2h",
			Help: "The brokers' delays (messageDelayLevel). A retry waits for the first that is long enough.",
		},
		{
			Name: "hold_pull", Type: typeDuration, Default: "15s",
			Help: "How long a broker holds a pull that finds nothing. It may answer 5s later than that.",
		},
		{Name: "call_timeout", Type: typeDuration, Default: "3s", Help: "How long any other call may take."},
		{Name: "dial_timeout", Type: typeDuration, Default: "3s", Help: "How long the making of a connection may take."},
		{
			Name: "heartbeat_every", Type: typeDuration, Default: "30s",
			Help: "How often brokers hear of a member, which they forget after 120s of silence.",
		},
		{
			Name: "routes_every", Type: typeDuration, Default: "30s",
			Help: "How often name servers are asked for changes of topics.",
		},
		{
			Name: "rebalance_every", Type: typeDuration, Default: "20s",
			Help: "How often a member looks who else there is, besides when it is told of a change.",
		},
	}
}
