package rocketmqtest_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

// One cluster that has both, since each takes its seconds to start.
func TestServersThatInsistOnTLSAndDoNotFilter(t *testing.T) {
	t.Parallel()

	cert, key := rocketmqtest.Certificate(t, "127.0.0.1")
	cluster := rocketmqtest.Start(t, rocketmqtest.Options{
		Certificate: cert, Key: key, Config: map[string]string{"enablePropertyFilter": "false"},
	})

	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)

	w := newWorld(t, cluster, remoting.Options{TLS: &tls.Config{RootCAs: pool}})
	w.create(t, "T")
	w.send(t, "T", "in secret")

	if got := w.must(t, remoting.PullMessage, pullOf("T", "0", nil), nil); !strings.Contains(string(got.Body), "in secret") {
		t.Errorf("over TLS comes %+v", got)
	}

	for name, options := range map[string]remoting.Options{"plain": {}, "trusting others": {TLS: &tls.Config{}}} {
		other := newWorld(t, cluster, options)
		_, err := other.broker(within(t), remoting.GetMaxOffset, map[string]string{"topic": "T", "queueId": "0"}, nil)

		if _, refused := errors.AsType[*remoting.ConnectionError](err); !refused {
			t.Errorf("%s: %v", name, err)
		}
	}

	sql := map[string]string{"subscription": "a > 1", "expressionType": "SQL92"}
	w.refused(t, remoting.SystemError, remoting.PullMessage, pullOf("T", "0", sql))

	body, err := json.Marshal(map[string]any{"clientId": "c", "group": "readers", "subscriptionData": map[string]any{
		"topic": "T", "subString": "a > 1", "expressionType": "SQL92", "subVersion": 1,
	}})
	if err != nil {
		t.Fatal(err)
	}

	_, err = w.broker(within(t), remoting.CheckClientConfig, nil, body)
	if refused, ok := errors.AsType[*remoting.ResponseError](err); !ok || refused.Code != remoting.SystemError {
		t.Errorf("a check of a filter where filters are off: %v", err)
	}
}

func TestTwoBrokersShareATopicAndOneMayFail(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{Brokers: 2})
	w := newWorld(t, cluster, remoting.Options{})

	out := cluster.Admin(t, "updateTopic", "-t", "shared", "-c", "C", "-r", "2", "-w", "2")
	if !strings.Contains(out, "success") {
		t.Errorf("mqadmin says %s", out)
	}

	route := func() string {
		response, err := w.client.Call(within(t), w.NameServer, routeOf("shared"))
		if err != nil {
			t.Fatal(err)
		}

		return string(response.Body)
	}

	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()

	for _, step := range []struct {
		do   func()
		want int
	}{
		{func() {}, 2},
		{func() { cluster.Brokers[1].Kill(t) }, 1},
		{func() { cluster.Brokers[1].Start(t) }, 2},
	} {
		step.do()

		for n := 0; n != step.want; <-tick.C {
			n = 0

			for _, b := range cluster.Brokers {
				if strings.Contains(route(), `"`+b.Addr+`"`) {
					n++
				}
			}
		}
	}

	if fresh := newWorld(t, cluster, remoting.Options{}); fresh.send(t, "shared", "still here").Ext["queueOffset"] != "0" {
		t.Error("the first message is not at 0")
	}
}
