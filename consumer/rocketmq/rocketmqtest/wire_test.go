package rocketmqtest_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
	"github.com/millrace/millrace/consumer/rocketmq/rocketmqtest"
)

func TestTheWireIsWhatRealServersSpeak(t *testing.T) {
	t.Parallel()

	// One after the other: each is two Java machines.
	for _, version := range []string{rocketmqtest.DefaultVersion, rocketmqtest.NewestVersion, rocketmqtest.OldVersion} {
		t.Run(version, func(t *testing.T) {
			began := time.Now()
			cluster := rocketmqtest.Start(t, rocketmqtest.Options{Version: version})
			t.Logf("started in %v", time.Since(began))

			w := newWorld(t, cluster, remoting.Options{})
			w.create(t, "T")

			t.Run("cluster", func(t *testing.T) { clusterIsTold(t, w) })
			t.Run("messages", func(t *testing.T) { messagesComeBack(t, w) })
			t.Run("refusals", func(t *testing.T) { refusalsAreTold(t, w, version) })
			t.Run("held pull", func(t *testing.T) { aHeldPullIsWoken(t, w) })
			t.Run("members", func(t *testing.T) { membersAreNotified(t, w) })
			t.Run("tls", func(t *testing.T) { tlsIsVerified(t, w) })

			if version == rocketmqtest.DefaultVersion {
				t.Run("stop", func(t *testing.T) { aStopEndsHeldPulls(t, w) })
				t.Run("crash", func(t *testing.T) { aCrashForgetsFreshOffsets(t, w) })
			}
		})
	}
}

func clusterIsTold(t *testing.T, w *world) {
	response, err := w.client.Call(within(t), w.NameServer, &remoting.Command{Code: remoting.GetClusterInfo})
	if err != nil {
		t.Fatal(err)
	}

	var got struct {
		BrokerAddrTable map[string]struct {
			BrokerAddrs map[string]string `json:"brokerAddrs"`
		} `json:"brokerAddrTable"`
	}

	// Servers before 5 answer with numbers for keys, which is no JSON; that is for whoever reads bodies.
	if err := json.Unmarshal(response.Body, &got); err != nil && !bytes.Contains(response.Body, []byte(`{0:"`+w.Brokers[0].Addr)) {
		t.Fatalf("%s: %v", response.Body, err)
	} else if addr := got.BrokerAddrTable[w.Brokers[0].Name].BrokerAddrs["0"]; err == nil && addr != w.Brokers[0].Addr {
		t.Errorf("the broker's address is %q, want %q", addr, w.Brokers[0].Addr)
	}

	_, err = w.client.Call(within(t), w.NameServer, routeOf("nobody"))
	if refused, ok := errors.AsType[*remoting.ResponseError](err); !ok || refused.Code != remoting.TopicNotExist {
		t.Errorf("the route of a topic that does not exist: %v", err)
	}
}

func messagesComeBack(t *testing.T, w *world) {
	bodies := []string{"hello", "größer \x00\x01\x02", string(bytes.Repeat([]byte("0123456789abcdef"), 200_000))}
	for i, body := range bodies {
		if got := w.send(t, "T", body); got.Ext["queueOffset"] != string('0'+rune(i)) || len(got.Ext["msgId"]) != 32 {
			t.Errorf("message %d is stored as %v", i, got.Ext)
		}
	}

	for i, body := range bodies {
		offset := string('0' + rune(i))
		got := w.must(t, remoting.PullMessage, pullOf("T", offset, map[string]string{"maxMsgNums": "1"}), nil)

		// Of the record: magic at 4, queue offset at 20, physical offset at 28.
		if len(got.Body) < 36 || binary.BigEndian.Uint32(got.Body[4:]) != 0xDAA320A7 ||
			binary.BigEndian.Uint64(got.Body[20:]) != uint64(i) || !bytes.Contains(got.Body, []byte(body)) {
			t.Errorf("the message at %s comes back as %d bytes, %v", offset, len(got.Body), got.Ext)
		}

		if want := string('1' + rune(i)); got.Ext["nextBeginOffset"] != want || got.Ext["maxOffset"] != "3" || got.Ext["minOffset"] != "0" {
			t.Errorf("the pull at %s answers %v", offset, got.Ext)
		}
	}
}

func refusalsAreTold(t *testing.T, w *world, version string) {
	beyond := remoting.InvalidParameter
	if version == rocketmqtest.OldVersion {
		beyond = remoting.SystemError
	}

	w.refused(t, remoting.SubscriptionNotExist, remoting.PullMessage, pullOf("T", "0", map[string]string{"sysFlag": "0"}))
	w.refused(t, beyond, remoting.PullMessage, pullOf("T", "0", map[string]string{"queueId": "7"}))
	w.refused(t, remoting.TopicNotExist, remoting.PullMessage, pullOf("nobody", "0", nil))
	w.refused(t, remoting.PullNotFound, remoting.PullMessage, pullOf("T", "3", nil))
	w.refused(t, remoting.SystemError, remoting.GetConsumerList, map[string]string{"consumerGroup": "nobody"})

	moved := w.must(t, remoting.PullMessage, pullOf("T", "99", nil), nil, remoting.PullOffsetMoved)
	if moved.Code != remoting.PullOffsetMoved || moved.Ext["nextBeginOffset"] != "3" {
		t.Errorf("a pull above the end answers %+v", moved)
	}

	filtered := w.must(t, remoting.PullMessage, pullOf("T", "0", map[string]string{"subscription": "TagB"}), nil,
		remoting.PullRetryImmediately)
	if filtered.Code != remoting.PullRetryImmediately || filtered.Ext["nextBeginOffset"] != "3" {
		t.Errorf("a pull of a tag that no message has answers %+v", filtered)
	}
}

func aHeldPullIsWoken(t *testing.T, w *world) {
	ctx := within(t)
	done := make(chan error, 1)

	go func() {
		held := pullOf("T", "3", map[string]string{"sysFlag": "6", "suspendTimeoutMillis": "15000"})

		response, err := w.broker(ctx, remoting.PullMessage, held, nil, remoting.PullNotFound)
		if err == nil && (response.Code != remoting.Success || !bytes.Contains(response.Body, []byte("wake"))) {
			err = errors.New("it was not the message that ended the pull: " + response.Remark)
		}

		done <- err
	}()

	// The broker holds the pull or it has not got it yet; either way the message ends it, on the connection that it is on.
	began := time.Now()

	w.send(t, "T", "wake")

	if err := <-done; err != nil {
		t.Fatal(err)
	}

	t.Logf("woken after %v", time.Since(began))
}

func membersAreNotified(t *testing.T, w *world) {
	notified := make(chan string, 16)
	first := newWorld(t, w.Cluster, remoting.Options{
		Handle: func(_ context.Context, _ string, request *remoting.Command) *remoting.Command {
			if request.Code == remoting.NotifyConsumerChange && request.IsOneway() {
				notified <- request.Ext["consumerGroup"]
			}

			return nil
		},
	})
	second := newWorld(t, w.Cluster, remoting.Options{})

	members := func() (ids []string) {
		var list struct {
			IDs []string `json:"consumerIdList"`
		}

		response := w.must(t, remoting.GetConsumerList, map[string]string{"consumerGroup": "members"}, nil)
		if err := json.Unmarshal(response.Body, &list); err != nil {
			t.Fatal(err)
		}

		return list.IDs
	}
	told := func(when string) {
		select {
		case group := <-notified:
			if group != "members" {
				t.Fatalf("%s: notified of group %q", when, group)
			}
		case <-time.After(patience):
			t.Fatalf("%s: not notified", when)
		}
	}

	first.must(t, remoting.Heartbeat, nil, heartbeatOf(t, "same", "members", "T"))
	told("when it joined itself")

	for len(notified) > 0 {
		<-notified
	}

	second.must(t, remoting.Heartbeat, nil, heartbeatOf(t, "same", "members", "T"))
	told("when the second joined")

	if ids := members(); len(ids) != 2 || ids[0] != ids[1] {
		t.Errorf("one id on two connections is listed as %v", ids)
	}

	for len(notified) > 0 {
		<-notified
	}

	second.client.Close()
	told("when the second hung up")

	if ids := members(); len(ids) != 1 {
		t.Errorf("after one connection was closed the members are %v", ids)
	}
}

func tlsIsVerified(t *testing.T, w *world) {
	strict := newWorld(t, w.Cluster, remoting.Options{TLS: &tls.Config{}})

	_, err := strict.broker(within(t), remoting.GetMaxOffset, map[string]string{"topic": "T", "queueId": "0"}, nil)
	if _, verified := errors.AsType[*tls.CertificateVerificationError](err); !verified {
		t.Errorf("a certificate that signs itself: %v", err)
	}

	lax := newWorld(t, w.Cluster, remoting.Options{TLS: &tls.Config{InsecureSkipVerify: true}})
	if got := lax.must(t, remoting.GetMaxOffset, map[string]string{"topic": "T", "queueId": "0"}, nil); got.Ext["offset"] == "" {
		t.Errorf("over TLS: %+v", got)
	}

	if _, err := lax.client.Call(within(t), w.NameServer, routeOf("T")); err != nil {
		t.Errorf("the name server over TLS: %v", err)
	}
}

func aStopEndsHeldPulls(t *testing.T, w *world) {
	w.must(t, remoting.UpdateConsumerOffset, map[string]string{
		"consumerGroup": "readers", "topic": "T", "queueId": "0", "commitOffset": "3",
	}, nil)

	ctx := within(t)
	done := make(chan error, 1)

	go func() {
		held := pullOf("T", "4", map[string]string{"sysFlag": "6", "suspendTimeoutMillis": "15000"})
		_, err := w.broker(ctx, remoting.PullMessage, held, nil)
		done <- err
	}()

	w.must(t, remoting.GetMaxOffset, map[string]string{"topic": "T", "queueId": "0"}, nil)

	began := time.Now()

	w.Brokers[0].Stop(t)

	stopped := time.Since(began)
	err := <-done

	_, lost := errors.AsType[*remoting.ConnectionError](err)
	_, refused := errors.AsType[*remoting.ResponseError](err)

	if !lost && !refused {
		t.Errorf("the held pull ended with %v", err)
	}

	t.Logf("stopped after %v; the held pull ended with: %v", stopped, err)
	w.Brokers[0].Start(t)

	if got := offsetOf(t, w); got != "3" {
		t.Errorf("after a stop the offset is %q, want 3", got)
	}
}

func aCrashForgetsFreshOffsets(t *testing.T, w *world) {
	fresh := map[string]string{"consumerGroup": "fresh", "topic": "T", "queueId": "0", "commitOffset": "2", "setZeroIfNotFound": "false"}

	// A commit does not make its group, nor does a query; a pull or a heartbeat does.
	w.refused(t, remoting.GroupNotExist, remoting.UpdateConsumerOffset, fresh)
	w.must(t, remoting.QueryConsumerOffset, fresh, nil, remoting.QueryNotFound)
	w.refused(t, remoting.GroupNotExist, remoting.UpdateConsumerOffset, fresh)
	w.must(t, remoting.PullMessage, pullOf("T", "0", map[string]string{"consumerGroup": "fresh"}), nil)
	w.must(t, remoting.UpdateConsumerOffset, fresh, nil)

	if got := w.must(t, remoting.QueryConsumerOffset, fresh, nil); got.Ext["offset"] != "2" {
		t.Errorf("after its commit the offset is %v", got.Ext)
	}

	w.send(t, "T", "the last word")
	w.Brokers[0].Kill(t)
	w.Brokers[0].Start(t)

	if got := offsetOf(t, w); got != "3" {
		t.Errorf("after a crash the old offset is %q, want 3", got)
	}

	after := newWorld(t, w.Cluster, remoting.Options{})

	// Offsets are written down every 5 s, so the fresh one may have been or not; what it must not be is another one.
	got := after.must(t, remoting.QueryConsumerOffset, fresh, nil, remoting.QueryNotFound)
	if got.Code == remoting.Success && got.Ext["offset"] != "2" {
		t.Errorf("after a crash the fresh offset is %v", got.Ext)
	}

	// It knows no member either, until one says that it is there.
	after.refused(t, remoting.SystemError, remoting.GetConsumerList, map[string]string{"consumerGroup": "fresh"})
	after.must(t, remoting.Heartbeat, nil, heartbeatOf(t, "m", "fresh", "T"))

	if list := after.must(t, remoting.GetConsumerList, map[string]string{"consumerGroup": "fresh"}, nil); !bytes.Contains(list.Body, []byte(`"m"`)) {
		t.Errorf("after a crash and a heartbeat the members are %s", list.Body)
	}

	t.Logf("after a crash right after its commit, the answer is code %d with %v", got.Code, got.Ext)

	last := after.must(t, remoting.PullMessage, pullOf("T", "4", nil), nil)
	if !bytes.Contains(last.Body, []byte("the last word")) {
		t.Error("after a crash the last message is gone")
	}
}

// offsetOf returns the stored offset of the group readers. It may have to connect anew, and wait for that.
func offsetOf(t *testing.T, w *world) string {
	t.Helper()

	fresh := newWorld(t, w.Cluster, remoting.Options{})

	return fresh.must(t, remoting.QueryConsumerOffset, map[string]string{
		"consumerGroup": "readers", "topic": "T", "queueId": "0", "setZeroIfNotFound": "false",
	}, nil, remoting.QueryNotFound).Ext["offset"]
}
