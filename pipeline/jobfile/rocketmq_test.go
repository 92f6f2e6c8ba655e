package jobfile_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline/jobfile"
)

const onRocketMQ = "name: x\nsource: { topic: x }\nchannels: { a: { sink: discard } }\nbroker: "

func TestJobsNameARocketMQCluster(t *testing.T) {
	t.Parallel()

	for src, want := range map[string]jobfile.RocketMQ{
		`{ rocketmq: "a:9876" }`:            {NameServers: []string{"a:9876"}},
		`{ rocketmq: [ "a:9876", "b:1" ] }`: {NameServers: []string{"a:9876", "b:1"}},
		`{ rocketmq: { name_servers: "a:9876", access_key: k, secret_key: s, tls: true, tags: { t: x || y }, orderly: true,
			delay_levels: [ 1s, 2s ] } }`: {
			NameServers: []string{"a:9876"}, AccessKey: "k", SecretKey: "s", TLS: true, Tags: map[string]string{"t": "x || y"},
			Orderly: true, DelayLevels: []time.Duration{time.Second, 2 * time.Second},
		},
	} {
		f, err := parse(t, onRocketMQ+src)
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if f.Broker.RocketMQ == nil || !reflect.DeepEqual(*f.Broker.RocketMQ, want) {
			t.Errorf("%s: %+v", src, f.Broker.RocketMQ)
		}
	}

	for src, want := range map[string]string{
		`{ rocketmq: { tls: true } }`:                             "no name_servers",
		`{ rocketmq: { name_servers: "a:9876", access_key: k } }`: "only one is given",
		`{ rocketmq: "a:9876", embedded: ./data }`:                "both embedded and rocketmq",
		`{ rocketmq: { nameservers: "a:9876" } }`:                 `did you mean "name_servers"`,
	} {
		if _, err := parse(t, onRocketMQ+src); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: want %q in %v", src, want, err)
		}
	}
}
