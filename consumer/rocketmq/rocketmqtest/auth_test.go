package rocketmqtest_test

import (
	"errors"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

func TestSignaturesAreThoseThatARealBrokerAsksFor(t *testing.T) {
	t.Parallel()

	cluster := rocketmqtest.Start(t, rocketmqtest.Options{AccessKey: "u", SecretKey: "12345678"})

	right := remoting.Credentials{AccessKey: "u", SecretKey: "12345678"}
	withToken := remoting.Credentials{AccessKey: "u", SecretKey: "12345678", SecurityToken: "sts"}

	for name, user := range map[string]remoting.Credentials{"right": right, "with a token": withToken} {
		w := newWorld(t, cluster, remoting.Options{Credentials: user})
		w.create(t, "T")

		// The properties hold characters that JSON writes as escapes, and there is a body: both are signed.
		w.send(t, "T", "<hello> & größer")
		w.must(t, remoting.PullMessage, pullOf("T", "0", nil), nil)
		t.Logf("%s: accepted", name)
	}

	for name, user := range map[string]remoting.Credentials{
		"none":         {},
		"wrong secret": {AccessKey: "u", SecretKey: "87654321"},
		"wrong user":   {AccessKey: "nobody", SecretKey: "12345678"},
	} {
		w := newWorld(t, cluster, remoting.Options{Credentials: user})
		_, err := w.broker(within(t), remoting.PullMessage, pullOf("T", "0", nil), nil)

		refused, ok := errors.AsType[*remoting.ResponseError](err)
		if !ok || refused.Code != remoting.NoPermission && refused.Code != remoting.SystemError {
			t.Errorf("%s: %v", name, err)
		}

		t.Logf("%s: %v", name, err)
	}
}
