package jobfile_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline/jobfile"
)

const onRocketMQ = "name: x\nsource: { topics: [ t, u ] }\nchannels: { a: { sink: discard } }\nbroker: "

func TestJobsNameARocketMQCluster(t *testing.T) {
	t.Parallel()

	for src, want := range map[string]jobfile.RocketMQ{
		`{ rocketmq: "a:9876" }`:            {NameServers: []string{"a:9876"}},
		`{ rocketmq: [ "a:9876", "b:1" ] }`: {NameServers: []string{"a:9876", "b:1"}},
		`{ rocketmq: { name_servers: "a:9876" } }`: {
			NameServers: []string{"a:9876"},
		},
		`{ rocketmq: { name_servers: [ "a:9876" ], namespace: n, access_key: k, secret_key: "${PASSWORD}", security_token: st,
			tls: true, ca: ca.pem, certificate: c.pem, certificate_key: k.pem, server_name: mq.example.org,
			tags: { t: x || y }, sql: { u: a > 1 }, orderly: true, offsets_only: true, java_first_boot: true, allocation: circle, offset_dir: o,
			delay_levels: [ 1s, 2s ], hold_pull: 1s, call_timeout: 2s, dial_timeout: 3s, heartbeat_every: 4s, routes_every: 5s,
			rebalance_every: 6s } }`: {
			NameServers: []string{"a:9876"}, Namespace: "n", AccessKey: "k", SecretKey: "hunter2", SecurityToken: "st",
			TLS: true, CA: "ca.pem", Certificate: "c.pem", Key: "k.pem", ServerName: "mq.example.org",
			Tags: map[string]string{"t": "x || y"}, SQL: map[string]string{"u": "a > 1"},
			Orderly: true, OffsetsOnly: true, JavaFirstBoot: true, Circle: true, OffsetDir: "o",
			DelayLevels: []time.Duration{time.Second, 2 * time.Second}, HoldPull: time.Second, CallTimeout: 2 * time.Second,
			DialTimeout: 3 * time.Second, HeartbeatEvery: 4 * time.Second, RoutesEvery: 5 * time.Second,
			RebalanceEvery: 6 * time.Second,
		},
	} {
		f, err := parse(t, onRocketMQ+src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if f.Broker.RocketMQ == nil || !reflect.DeepEqual(*f.Broker.RocketMQ, want) {
			t.Errorf("%s: %+v", src, f.Broker.RocketMQ)
		}
	}
}

// A key that is written into the file itself is as secret as one that a variable brings.
func TestKeysOfAClusterAreNotShown(t *testing.T) {
	t.Parallel()

	f, err := parse(t, onRocketMQ+
		`{ rocketmq: { name_servers: "a:1", access_key: alice, secret_key: open-sesame, security_token: once } }`)
	if err != nil {
		t.Fatal(err)
	}

	shown := f.Redactor.Redact(fmt.Sprintf("%+v", *f.Broker.RocketMQ))
	if strings.Contains(shown, "sesame") || strings.Contains(shown, "once") || !strings.Contains(shown, "alice") {
		t.Errorf("shown: %s", shown)
	}
}
